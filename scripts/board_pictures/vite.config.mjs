import react from '@vitejs/plugin-react'
import { defineConfig } from 'vite'

// The page awaits its board at the top level, which older targets cannot.
export default defineConfig({ plugins: [react()], build: { target: 'esnext' }, logLevel: 'error' })

// Opens the page in headless Chromium and takes its picture:
// node draw.mjs CHROMIUM [ADDRESS WIDTH FILE]...

import { chromium } from 'playwright-core'

const [executablePath, ...wanted] = process.argv.slice(2)
const quiet = ['--disable-background-networking', '--disable-component-update', '--disable-sync']
const browser = await chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-gpu', ...quiet] })
let failed = false
for (let at = 0; at < wanted.length; at += 3) {
  const [address, width, file] = wanted.slice(at, at + 3)
  const page = await browser.newPage({ viewport: { width: Number(width), height: 900 } })
  page.on('pageerror', (error) => {
    failed = true
    console.error(`${file}: ${error.stack}`)
  })
  await page.goto(address)
  await page.waitForFunction(() => window.wanted && window.drawn >= window.wanted, null, { timeout: 120000 })
  await page.waitForTimeout(1500)
  const mistakes = await page.evaluate(() => window.mistakes)
  const empty = await page.locator('.nothing').allTextContents()
  for (const each of mistakes) console.error(`${file}: ${each}`)
  if (empty.length) console.error(`${file}: ${empty.length} panels are empty`)
  failed ||= mistakes.length > 0
  await page.screenshot({ path: file, fullPage: true })
  await page.close()
}
await browser.close()
process.exit(failed ? 1 : 0)

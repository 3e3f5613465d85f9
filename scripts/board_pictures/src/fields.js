// Units, thresholds and overrides, applied to frames by Grafana's own rules.

import {
  applyFieldOverrides,
  createTheme,
  FieldConfigOptionsRegistry,
  FieldType,
  identityOverrideProcessor,
} from '@grafana/data'
import { put, theme as mode } from './prometheus.js'

export const theme = createTheme({ colors: { mode } })

const OPTIONS = [
  ...['unit', 'min', 'max', 'decimals', 'color', 'thresholds', 'mappings', 'noValue', 'links'],
  ...['displayName', 'custom.cellOptions', 'custom.width'],
]
const registry = new FieldConfigOptionsRegistry(() =>
  OPTIONS.map((id) => ({
    id,
    path: id.replace('custom.', ''),
    name: id,
    process: identityOverrideProcessor,
    shouldApply: () => true,
    isCustom: id.startsWith('custom.'),
  })),
)
// What Grafana's panel plugins add where the board says nothing.
const CUSTOM = {
  drawStyle: 'line',
  lineInterpolation: 'linear',
  showPoints: 'auto',
  pointSize: 5,
  stacking: { mode: 'none', group: 'A' },
  axisPlacement: 'auto',
  axisColorMode: 'text',
  scaleDistribution: { type: 'linear' },
  hideFrom: { legend: false, tooltip: false, viz: false },
  thresholdsStyle: { mode: 'off' },
  spanNulls: false,
  cellOptions: { type: 'auto' },
  align: 'auto',
}

export function configured(panel) {
  const config = structuredClone(panel.fieldConfig || { defaults: {}, overrides: [] })
  config.defaults.custom = { ...CUSTOM, ...config.defaults.custom }
  const scheme = panel.type === 'timeseries' ? 'palette-classic' : 'thresholds'
  config.defaults.color ||= { mode: scheme }
  config.defaults.thresholds ||= { mode: 'absolute', steps: [{ value: null, color: 'text' }] }
  for (const steps of [
    config.defaults.thresholds.steps,
    ...config.overrides.flatMap((each) =>
      each.properties.filter((one) => one.id === 'thresholds').map((one) => one.value.steps),
    ),
  ])
    steps[0].value = -Infinity
  config.overrides ||= []
  return config
}

export function styled(panel, data) {
  const fieldConfig = configured(panel)
  for (const frame of data)
    for (const field of frame.fields)
      if (field.type !== FieldType.time) field.config.custom = { ...fieldConfig.defaults.custom }
  return applyFieldOverrides({
    data,
    fieldConfig,
    fieldConfigRegistry: registry,
    replaceVariables: put,
    theme,
    timeZone: 'utc',
  })
}

// Grafana's data frames of what Prometheus has answered, through the panel's own transformations.

import {
  FieldType,
  standardTransformers,
  standardTransformersRegistry,
  toDataFrame,
  transformDataFrame,
} from '@grafana/data'
import { lastValueFrom } from 'rxjs'
import { atOnce, curve } from './prometheus.js'

standardTransformersRegistry.setInit(() =>
  [...new Map(Object.values(standardTransformers).map((each) => [each.id, each])).values()].map((each) => ({
    id: each.id,
    name: each.name,
    transformation: () => Promise.resolve(each),
    editor: () => null,
  })),
)

const number = (text) => (Number.isFinite(Number(text)) ? Number(text) : null)
const named = (format, labels) =>
  format ? format.replace(/\{\{\s*(\w+)\s*\}\}/g, (_, name) => labels[name] ?? '') : 'Value'

async function tableFrame(target, isOne) {
  const { result } = await atOnce(target.expr)
  const labels = [...new Set(result.flatMap((row) => Object.keys(row.metric)))]
  return toDataFrame({
    refId: target.refId,
    fields: [
      { name: 'Time', type: FieldType.time, values: result.map((row) => row.value[0] * 1000) },
      ...labels.map((name) => ({
        name,
        type: FieldType.string,
        values: result.map((row) => row.metric[name] ?? ''),
      })),
      {
        name: isOne ? 'Value' : `Value #${target.refId}`,
        type: FieldType.number,
        values: result.map((row) => number(row.value[1])),
      },
    ],
  })
}

function seriesFrame(target, labels, points) {
  const name = named(target.legendFormat, labels)
  return toDataFrame({
    refId: target.refId,
    fields: [
      { name: 'Time', type: FieldType.time, values: points.map((each) => each[0] * 1000) },
      {
        name: 'Value',
        type: FieldType.number,
        labels,
        config: { displayNameFromDS: name },
        values: points.map((each) => number(each[1])),
      },
    ],
  })
}

export async function frames(panel) {
  const targets = panel.targets || []
  const found = []
  for (const target of targets) {
    if (target.format === 'table') {
      found.push(await tableFrame(target, targets.length === 1))
    } else if (target.instant) {
      const { result } = await atOnce(target.expr)
      found.push(...result.map((row) => seriesFrame(target, row.metric, [row.value])))
    } else {
      const { result } = await curve(target.expr)
      found.push(...result.map((row) => seriesFrame(target, row.metric, row.values)))
    }
  }
  if (!panel.transformations?.length) return found
  return lastValueFrom(transformDataFrame(panel.transformations, found))
}

// One panel: Grafana's own components for curves, tiles and tables, ours for heatmap and alerts.

import { dateTime, getFieldDisplayValues } from '@grafana/data'
import { BigValue, Table, TimeSeries, VizRepeater } from '@grafana/ui'
import React from 'react'
import { configured, styled, theme } from './fields.js'
import { from, get, put, to } from './prometheus.js'

const timeRange = { from: dateTime(from), to: dateTime(to), raw: { from: 'now-1h', to: 'now' } }
const faint = theme.colors.text.secondary

function Diamonds({ config, times }) {
  React.useLayoutEffect(() => {
    config.addHook('draw', (plot) => {
      const { ctx, bbox } = plot
      ctx.fillStyle = theme.visualization.getColorByName('blue')
      for (const time of times) {
        const x = plot.valToPos(time, 'x', true)
        const y = bbox.top + bbox.height - 12
        ctx.beginPath()
        for (const [dx, dy] of [[0, -9], [9, 0], [0, 9], [-9, 0]]) ctx.lineTo(x + dx, y + dy)
        ctx.fill()
      }
    })
  }, [config, times])
  return null
}

function Curves({ panel, data, times, width, height }) {
  const { displayMode = 'list', placement = 'bottom' } = panel.options?.legend || {}
  return (
    <TimeSeries
      frames={data}
      structureRev={1}
      timeRange={timeRange}
      timeZone="browser"
      width={width}
      height={height}
      legend={{ showLegend: true, displayMode, placement, calcs: [] }}
      options={{}}
      tweakAxis={(axis) => axis}
    >
      {(config) => <Diamonds config={config} times={times} />}
    </TimeSeries>
  )
}

// The board shows the number without the name of its series.
const bare = ({ title, ...display }) => display

function Tile({ panel, data, width, height }) {
  const values = getFieldDisplayValues({
    fieldConfig: configured(panel),
    reduceOptions: { calcs: ['lastNotNull'], values: false },
    data,
    theme,
    replaceVariables: put,
    timeZone: 'utc',
    sparkline: false,
  })
  return (
    <VizRepeater
      source={values}
      getValues={() => values}
      orientation="auto"
      width={width}
      height={height}
      renderCounter={0}
      renderValue={(one) => (
        <BigValue
          value={bare(one.value.display)}
          width={one.width}
          height={one.height}
          colorMode={panel.options.colorMode}
          graphMode="none"
          theme={theme}
        />
      )}
    />
  )
}

function Heat({ data, width, height }) {
  const bound = (frame) => frame.fields[1].labels.le.replace(/\.0$/, '')
  const size = (frame) => (bound(frame) === '+Inf' ? Infinity : Number(bound(frame)))
  const sorted = [...data].sort((a, b) => (size(a) < size(b) ? -1 : 1))
  const rows = sorted.map((frame, place) => ({
    le: bound(frame),
    times: frame.fields[0].values,
    counts: frame.fields[1].values.map((count, at) =>
      Math.max(0, count - (place ? sorted[place - 1].fields[1].values[at] || 0 : 0)),
    ),
  }))
  const most = Math.max(1e-9, ...rows.flatMap((row) => row.counts))
  const [left, below] = [46, 18]
  const high = (height - below) / rows.length
  const x = (time) => left + ((time - from) / (to - from)) * (width - left)
  return (
    <svg width={width} height={height} style={{ font: '11px Inter, sans-serif' }}>
      {rows.map((row, place) => {
        const y = height - below - (place + 1) * high
        const wide = row.times.length > 1 ? x(row.times[1]) - x(row.times[0]) : 4
        return (
          <g key={row.le}>
            <text x={left - 6} y={y + high / 2 + 4} textAnchor="end" fill={faint}>{row.le}</text>
            {row.counts.map((count, at) =>
              count > 0 && (
                <rect
                  key={row.times[at]}
                  x={x(row.times[at])}
                  y={y}
                  width={wide}
                  height={high - 1}
                  fill={theme.visualization.getColorByName('orange')}
                  opacity={0.15 + 0.85 * Math.sqrt(count / most)}
                />
              ),
            )}
          </g>
        )
      })}
      {[0, 0.25, 0.5, 0.75].map((part) => (
        <text key={part} x={left + part * (width - left)} y={height - 4} fill={faint}>
          {dateTime(from + part * (to - from)).format('HH:mm')}
        </text>
      ))}
    </svg>
  )
}

export function Alerts({ height }) {
  const [alerts, show] = React.useState([])
  React.useEffect(() => {
    get('alerts', {}).then((found) => show(found.alerts))
  }, [])
  const names = [...new Set(alerts.map((each) => each.labels.alertname))]
  return (
    <div style={{ overflow: 'hidden', height, fontSize: 12 }}>
      {names.length ? null : <div style={{ color: faint }}>No alerts fire.</div>}
      {names.map((name) => {
        const each = alerts.filter((one) => one.labels.alertname === name)
        const critical = each.some((one) => one.labels.severity === 'critical')
        const colour = critical ? theme.colors.error.main : theme.colors.warning.main
        return (
          <div key={name} style={{ margin: 3, padding: '3px 8px', borderLeft: `3px solid ${colour}` }}>
            <b>{name}</b> <span style={{ color: faint }}>{each[0].state}, {each.length}</span>
          </div>
        )
      })}
    </div>
  )
}

export function Body({ panel, found, width, height }) {
  const data = styled(panel, found.frames)
  const rows = data.reduce((sum, frame) => sum + frame.length, 0)
  if (!rows) {
    const nothing = panel.fieldConfig?.defaults?.noValue ?? 'No data'
    return <div className="nothing" style={{ color: faint, textAlign: 'center' }}>{nothing}</div>
  }
  if (panel.type === 'timeseries')
    return <Curves {...{ panel, data, width, height }} times={found.exemplars} />
  if (panel.type === 'heatmap') return <Heat {...{ data, width, height }} />
  if (panel.type === 'table') return <Table data={data[0]} {...{ width, height }} columnMinWidth={60} initialSortBy={panel.options.sortBy} />
  return <Tile {...{ panel, data, width, height }} />
}

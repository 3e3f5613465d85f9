// A whole board on one page, for a picture: not Grafana, but what Grafana's components make of it.

import { GlobalStyles, PanelChrome, PortalContainer } from '@grafana/ui'
import { ThemeContext } from '@grafana/data'
import React from 'react'
import { createRoot } from 'react-dom/client'
import { theme } from './fields.js'
import { frames } from './frames.js'
import { Alerts, Body } from './panels.jsx'
import { boardName, exemplars, width } from './prometheus.js'

const [ROW, GAP, HEAD] = [30, 8, 56]
const column = (width - 2 * GAP) / 24

class Shown extends React.Component {
  state = {}
  static getDerivedStateFromError(error) {
    window.mistakes.push(String(error.stack || error))
    return { error }
  }
  render() {
    return this.state.error ? <pre>{String(this.state.error)}</pre> : this.props.children
  }
}

async function asked(panel) {
  const marked = (panel.targets || []).filter((target) => target.exemplar)
  const found = await Promise.all(marked.map((target) => exemplars(target.expr)))
  return { frames: await frames(panel), exemplars: found.flat() }
}

function Panel({ panel }) {
  const place = panel.gridPos
  const [found, show] = React.useState(null)
  React.useEffect(() => {
    if (!panel.targets) return
    asked(panel)
      .then(show)
      .catch((error) => window.mistakes.push(`${panel.title}: ${error.stack || error}`))
      .finally(() => (window.drawn += 1))
  }, [panel])
  const size = { width: place.w * column - GAP, height: place.h * (ROW + GAP) - GAP }
  const style = { position: 'absolute', left: (place.x || 0) * column, top: place.y * (ROW + GAP) }
  if (panel.type === 'row')
    return <div style={{ ...style, ...size, lineHeight: '30px', fontWeight: 500 }}>⌄ {panel.title}</div>
  return (
    <div style={style}>
      <PanelChrome title={panel.title} description={panel.description} {...size}>
        {(wide, high) => (
          <Shown>
            {panel.type === 'alertlist' ? <Alerts height={high} /> : null}
            {found ? <Body {...{ panel, found }} width={wide} height={high} /> : null}
          </Shown>
        )}
      </PanelChrome>
    </div>
  )
}

window.drawn = 0
window.mistakes = []
const board = await (await fetch(`/${boardName}.json`)).json()
window.wanted = board.panels.filter((panel) => panel.targets).length
const { canvas } = theme.colors.background
document.body.style.cssText = `margin:0;background:${canvas};color:${theme.colors.text.primary}`
const height = Math.max(...board.panels.map((each) => each.gridPos.y + each.gridPos.h)) * (ROW + GAP)
const chosen = board.templating.list.filter((each) => each.hide !== 2).map((each) => each.label)
createRoot(document.getElementById('root')).render(
  <ThemeContext.Provider value={theme}>
    <GlobalStyles />
    <div style={{ height: HEAD, lineHeight: `${HEAD}px`, padding: '0 16px', fontSize: 18 }}>
      {board.title}
      <span style={{ fontSize: 12, marginLeft: 16, color: theme.colors.text.secondary }}>
        {chosen.join(' · ')}: all
      </span>
    </div>
    <div style={{ position: 'relative', height, margin: `0 ${GAP}px` }}>
      {board.panels.map((panel) => <Panel key={panel.id} panel={panel} />)}
    </div>
    <PortalContainer />
  </ThemeContext.Provider>,
)

// What the page shows: a board's queries, asked of a Prometheus with the variables put in.

const asked = new URLSearchParams(location.search)
export const theme = asked.get('theme') || 'light'
export const width = Number(asked.get('width') || 1440)
export const boardName = asked.get('board')
const prometheus = asked.get('prometheus')
const seconds = Number(asked.get('seconds') || 900)
const MINUTE = 60_000
// Between two minutes, so that no label of an axis stands at its end and is cut.
export const to = Math.floor((Date.now() - 40_000) / MINUTE) * MINUTE + 40_000
export const from = to - seconds * 1000
const step = Math.max(5, Math.round(seconds / 120))
const values = {
  $__rate_interval: `${Math.max(step, 20)}s`,
  $__range: `${seconds}s`,
  $job: '.+',
  $agent: '.*',
  $rule: '.*',
}

export const put = (text) =>
  Object.entries(values).reduce((done, [name, value]) => done.replaceAll(name, value), text)

export async function get(path, query) {
  const answer = await fetch(`${prometheus}/api/v1/${path}?${new URLSearchParams(query)}`)
  const body = await answer.json()
  if (body.status !== 'success') throw new Error(body.error)
  return body.data
}

const range = { start: from / 1000, end: to / 1000 }
export const atOnce = (expression) => get('query', { query: put(expression), time: to / 1000 })
export const curve = (expression) =>
  get('query_range', { query: put(expression), ...range, step })

export async function exemplars(expression) {
  const found = await get('query_exemplars', { query: put(expression), ...range })
  return found.flatMap((series) => series.exemplars.map((each) => each.timestamp * 1000))
}

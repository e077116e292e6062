/** The evidence of a reason in words: what limited, raised or counted it. Pure. */

/** A sentence about a reason; `limit` took points away, `lift` gave some. */
export type Note = { kind: 'limit' | 'lift' | 'fact'; text: string }

/**
 * The notes of a reason. What limited it stands in one line that adds up: `85 → 70: all signs of
 * root together count at most 70`.
 * @param points of its signals before any limit; null while they are not known
 */
export function toReasonNotes(
  { weight, evidence }: { weight: number; evidence: Evidence },
  points: number | null,
): Note[] {
  const notes = toNotes(evidence)
  const limits = toPointLimits(evidence)
  if (points === null || points <= weight || limits.length === 0) return notes
  const texts = limits.map(({ text }) => text)
  const others = notes.filter(({ kind, text }) => kind !== 'limit' || !texts.includes(text))
  return [{ kind: 'limit', text: `${points} → ${weight}: ${texts.join('; ')}` }, ...others]
}

/** What took points of signals away. */
const toPointLimits = (evidence: Evidence): Note[] => [
  ...toHalved(evidence),
  ...toCaps(evidence.caps),
  ...toSoft(evidence),
]

type Evidence = Record<string, unknown>

const texts = (value: unknown): string[] =>
  Array.isArray(value) ? value.filter((one) => typeof one === 'string') : []

/** The paths of the signals behind a reason; none for one that counts earlier events. */
export const signalsOf = (evidence: Evidence): string[] => texts(evidence.signals)

type SentSignal = { signal: string; value: unknown; outcome: string }

/** Signals without points that stand beside one reason. */
const besideMax = 5

const categoryOf = (path: string): string => path.slice(0, path.indexOf('.'))

/** What says more than that something was measured: names, files, modules that were found. */
const isTelling = ({ value, outcome }: SentSignal): boolean =>
  (outcome === 'weightless' || outcome === 'unknown') &&
  (typeof value === 'string' ? value !== '' : Array.isArray(value) && value.length > 0)

/**
 * Signals that count nothing and tell most, such as the name of what hooks the app: each stands
 * beside the reason of its category that counts most, in place of far below it under 0 points.
 * @returns by the code of the reason
 */
export function toBeside<Signal extends SentSignal>(
  reasons: readonly { code: string; weight: number; evidence: Evidence }[],
  signals: readonly Signal[],
): Map<string, Signal[]> {
  const named = new Set(reasons.flatMap(({ evidence }) => signalsOf(evidence)))
  const byWeight = [...reasons].sort((a, b) => b.weight - a.weight)
  const beside = new Map<string, Signal[]>()
  for (const one of signals) {
    if (named.has(one.signal) || !isTelling(one)) continue
    const category = categoryOf(one.signal)
    const reason = byWeight.find(({ evidence }) =>
      signalsOf(evidence).some((path) => categoryOf(path) === category),
    )
    if (reason === undefined) continue
    const present = beside.get(reason.code) ?? []
    if (present.length < besideMax) beside.set(reason.code, [...present, one])
  }
  return beside
}

const windows: Record<string, string> = { s: 'second', m: 'minute', h: 'hour', d: 'day' }

/** `5m` as `5 minutes`; what is no window stays as it is. */
function toSpan(window: string): string {
  const [, count, unit] = /^(\d+)([smhd])$/.exec(window) ?? []
  if (count === undefined || unit === undefined) return window
  return `${count} ${windows[unit]}${count === '1' ? '' : 's'}`
}

const known = [
  ...['signals', 'caps', 'strong_evidence', 'halved_by', 'soft_limit', 'floor'],
  ...['metric', 'count', 'threshold', 'window', 'capped'],
  ...['seconds_after_first_copy', 'network_changed'],
]

/** @param evidence of a reason, as the API has it */
export function toNotes(evidence: Evidence): Note[] {
  return [
    ...(evidence.signal === 'attestation.replayed' ? toReplay(evidence) : toCount(evidence)),
    ...toCaps(evidence.caps),
    ...toStrong(evidence),
    ...toHalved(evidence),
    ...toSoft(evidence),
    ...toFloor(evidence.floor),
    ...toRest(evidence),
  ]
}

function toCount({ metric, count, threshold, window, capped }: Evidence): Note[] {
  if (typeof metric !== 'string') return []
  const span = window === 'event' ? 'in this event' : `in ${toSpan(String(window))}`
  const what = metric.replaceAll('_', ' ')
  const text = `${what}: ${count} ${span}, the rule begins above ${threshold}`
  return [{ kind: 'fact', text }, ...toLimit(capped)]
}

const toLimit = (capped: unknown): Note[] =>
  capped === true ? [{ kind: 'limit', text: 'limited to the highest score allowed' }] : []

/** By what the copy of an event is a replay: how late it came, or that its network is another. */
function toReplay({ metric, count, threshold, capped, ...more }: Evidence): Note[] {
  const isLate = metric === 'seconds_after_first_copy'
  const after = toTime(isLate ? count : more.seconds_after_first_copy)
  const notes = [`an event came again ${after} after its first copy`]
  if (isLate) notes.push(`a client’s own retries come within ${toTime(threshold)}`)
  if (more.network_changed === true) notes.push('the copy came from another network')
  return [...notes.map((text): Note => ({ kind: 'fact', text })), ...toLimit(capped)]
}

/** In the largest unit of which there are two at least. */
function toTime(seconds: unknown): string {
  const whole = Number(seconds)
  const [unit, size] = units.find(([, size]) => whole >= 2 * size) ?? ['second', 1]
  const count = Math.floor(whole / size)
  return `${count} ${unit}${count === 1 ? '' : 's'}`
}

const units = [
  ['day', 86_400],
  ['hour', 3_600],
  ['minute', 60],
] as const

function toCaps(caps: unknown): Note[] {
  if (!Array.isArray(caps)) return []
  return caps.map(({ category, group, cap, sum }): Note => {
    const whole = category === 'all' ? 'all signs' : `all signs of ${category}`
    const what = Array.isArray(group) ? group.join(', ') : whole
    return { kind: 'limit', text: `${what} together count at most ${cap} instead of ${sum}` }
  })
}

function toStrong({ strong_evidence: strong }: Evidence): Note[] {
  const paths = texts(strong)
  if (paths.length === 0) return []
  return [{ kind: 'lift', text: `strong evidence fills the category: ${paths.join(', ')}` }]
}

function toHalved({ halved_by: by }: Evidence): Note[] {
  const paths = texts(by)
  return paths.length === 0
    ? []
    : [
        {
          kind: 'limit',
          text: `counts half: ${paths.join(', ')} already ${paths.length === 1 ? 'shows' : 'show'} it`,
        },
      ]
}

function toSoft({ soft_limit: limit }: Evidence): Note[] {
  if (typeof limit !== 'number') return []
  return [{ kind: 'limit', text: `all soft signs together count at most ${limit}` }]
}

function toFloor(floor: unknown): Note[] {
  if (typeof floor !== 'object' || floor === null) return []
  const { signal, score } = floor as { signal: string; score: number }
  return [{ kind: 'lift', text: `floor of ${signal}: lifts the score to ${score}` }]
}

/** Evidence that has no words of its own is shown as it is. */
function toRest(evidence: Evidence): Note[] {
  return Object.entries(evidence)
    .filter(([name]) => !known.includes(name))
    .map(([name, value]) => ({
      kind: 'fact',
      text: `${name.replaceAll('_', ' ')}: ${typeof value === 'string' ? value : JSON.stringify(value)}`,
    }))
}

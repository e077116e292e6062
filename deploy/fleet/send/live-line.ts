/**
 * The progress line of a run: rewritten in place on a terminal, printed every few seconds
 * elsewhere.
 * It goes to stderr; stdout has the result only.
 */
import type { Latencies } from './latencies.ts'
import type { Counters } from './sent-events.ts'

type LiveFacts = {
  elapsedMs: number
  ratePerSecond: number
  counters: Counters
  mismatches: number
  /** Latencies since the line was printed last. */
  latencies: Latencies
  /** Genuine webhooks so far, or null when none are received. */
  webhooks: number | null
}

export type Screen = {
  write: (text: string) => void
  isTerminal: boolean
  /** Columns of the terminal. */
  columns: number
}

const terminalEveryMs = 500
const plainEveryMs = 5_000

export type LiveLine = {
  /** Shows another step than sending. */
  showStep(text: string): void
  stop(): void
}

/** Starts the line; `read` is called each time it is drawn and may clear its latencies. */
export function startLiveLine(screen: Screen, read: () => LiveFacts): LiveLine {
  let printedAtMs = Number.NEGATIVE_INFINITY
  let sentBefore = 0
  let drawnAtMs = 0
  const draw = () => {
    const facts = read()
    const seconds = Math.max(0.001, (facts.elapsedMs - drawnAtMs) / 1000)
    const achieved = (facts.counters.sent - sentBefore) / seconds
    drawnAtMs = facts.elapsedMs
    sentBefore = facts.counters.sent
    show(screen, toLiveText(facts, achieved))
    facts.latencies.clear()
  }
  const timer = setInterval(draw, screen.isTerminal ? terminalEveryMs : plainEveryMs)
  return {
    showStep(text) {
      clearInterval(timer)
      const nowMs = read().elapsedMs
      if (!screen.isTerminal && nowMs - printedAtMs < plainEveryMs) return
      printedAtMs = nowMs
      show(screen, text)
    },
    stop() {
      clearInterval(timer)
      if (screen.isTerminal) screen.write('\r\u001b[K')
    },
  }
}

function show(screen: Screen, text: string): void {
  if (screen.isTerminal) screen.write(`\r\u001b[K${text.slice(0, screen.columns - 1)}`)
  else screen.write(`${text}\n`)
}

/** @param achieved requests per second since the line before */
function toLiveText(facts: LiveFacts, achieved: number): string {
  const { counters, latencies } = facts
  const { ALLOW = 0, REVIEW = 0, BLOCK = 0 } = counters.actions
  const [p50, p99] = [0.5, 0.99].map((share) => latencies.percentile(share).toFixed(1))
  const parts = [
    toClock(facts.elapsedMs),
    `${achieved.toFixed(0)}/${facts.ratePerSecond} per s`,
    `accepted ${counters.accepted}`,
    `p50 ${p50} ms p99 ${p99} ms`,
    `ALLOW ${ALLOW} REVIEW ${REVIEW} BLOCK ${BLOCK}`,
  ]
  if (facts.webhooks !== null) parts.push(`alerts received ${facts.webhooks}`)
  if (counters.retries > 0) parts.push(`retries ${counters.retries}`)
  const failed = counters.refused + counters.unknown
  if (failed > 0) parts.push(`not accepted ${failed}`)
  if (facts.mismatches > 0) parts.push(`MISMATCHES ${facts.mismatches}`)
  return parts.join('  ')
}

function toClock(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1000))
  const twoDigits = (value: number) => String(value).padStart(2, '0')
  return `${twoDigits(Math.floor(seconds / 60))}:${twoDigits(seconds % 60)}`
}

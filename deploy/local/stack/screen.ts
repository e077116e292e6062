// Output to the terminal. Write errors are ignored: a closed terminal or pipe must not interrupt
// an orderly stop.

export type Screen = {
  line: (text?: string) => void
  /** One finished step of the start: name, what, and the seconds since `sinceMs`. */
  step: (name: string, what: string, sinceMs: number) => void
  /** A message about one child or topic, possibly of several lines. */
  note: (name: string, text: string) => void
}

const NAME_WIDTH = 13
const WHAT_WIDTH = 52

export function createScreen(out: NodeJS.WritableStream): Screen {
  out.on('error', () => undefined)
  const line = (text = '') => {
    out.write(`${text}\n`)
  }
  return {
    line,
    step: (name, what, sinceMs) => {
      const seconds = ((performance.now() - sinceMs) / 1000).toFixed(2)
      line(`  ${name.padEnd(NAME_WIDTH)}${what.padEnd(WHAT_WIDTH)}${seconds.padStart(7)} s`)
    },
    note: (name, text) => {
      for (const each of text.split('\n')) line(`  ${name.padEnd(NAME_WIDTH)}${each}`)
    },
  }
}

/** The URL with its password masked, for external servers. */
export function withoutPassword(url: string): string {
  return url.replace(/^([^/]*\/\/[^:@/]*):[^/?#]+@/, '$1:***@')
}

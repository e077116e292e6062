// What the person at the terminal sees. A terminal that has gone away (npm was killed, a pipe was
// closed) must not end the stack in disorder, so errors of the output are ignored.

export type Screen = {
  line: (text?: string) => void
  /** One finished step of the start: name, what, and the seconds since `sinceMs`. */
  step: (name: string, what: string, sinceMs: number) => void
  /** News of one part, possibly several lines. */
  part: (name: string, text: string) => void
}

const NAME_WIDTH = 12
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
    part: (name, text) => {
      for (const each of text.split('\n')) line(`  ${name.padEnd(NAME_WIDTH)}${each}`)
    },
  }
}

/** A URL that may be shown: the password of somebody else's server is not ours to print. */
export function withoutPassword(url: string): string {
  const parsed = new URL(url)
  if (parsed.password === '') return url
  parsed.password = '***'
  return parsed.href
}

/**
 * Counters of processes that are killed. They are read often and added up over restarts. Counts
 * between the last reading and a kill are lost, so the sums are lower bounds.
 */

export type CounterWatch = {
  /** The sum over all labels and restarts so far. */
  total: (name: string) => number
  /** The same for one process's series whose labels include this text. */
  totalOf: (name: string, labels: string) => number
  /** Reads one process now, as before a kill. */
  readNow: (service: string) => Promise<void>
  stop: () => Promise<void>
}

const everyMs = 1_000
const readLimitMs = 900

/** @param urls of the services' internal listeners by name */
export function watchCounters(
  urls: Readonly<Record<string, string>>,
  names: readonly string[],
): CounterWatch {
  const lives = new Map<string, { last: number; before: number }>()
  const pattern = new RegExp(`^(${names.join('|')})(?:\\{([^}]*)\\})? ([\\d.e+]+)$`, 'gm')
  const readNow = async (service: string) => {
    const text = await readMetrics(`${urls[service]}/metrics`)
    for (const [, name, labels = '', value] of text.matchAll(pattern)) {
      const key = `${name}{${service},${labels}}`
      const life = lives.get(key) ?? { last: 0, before: 0 }
      lives.set(key, life)
      if (Number(value) < life.last) life.before += life.last
      life.last = Number(value)
    }
  }
  let running = true
  const loop = async (service: string) => {
    while (running) {
      await readNow(service)
      await new Promise((resolve) => setTimeout(resolve, everyMs))
    }
  }
  const loops = Object.keys(urls).map(loop)
  const totalOf = (name: string, labels: string) => {
    let sum = 0
    for (const [key, { last, before }] of lives) {
      if (key.startsWith(`${name}{`) && key.includes(labels)) sum += last + before
    }
    return sum
  }
  return {
    totalOf,
    total: (name) => totalOf(name, ''),
    readNow,
    stop: async () => {
      running = false
      await Promise.all(loops)
    },
  }
}

/** An empty text for a process that is down. */
async function readMetrics(url: string): Promise<string> {
  try {
    return await (await fetch(url, { signal: AbortSignal.timeout(readLimitMs) })).text()
  } catch {
    return ''
  }
}

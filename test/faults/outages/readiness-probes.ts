/** Reads `/readyz` of each process continuously and keeps every result. */
import { setTimeout as pause } from 'node:timers/promises'
import { SERVICE_NAMES, type ServiceName } from '../../../deploy/local/stack/settings.ts'

export type Probe = {
  name: ServiceName
  begunMs: number
  tookMs: number
  ready: boolean
  /** What is missing, or why there was no response. */
  why: string
}

export type Probes = { seen: Probe[]; stop: () => Promise<void> }

const probeEveryMs = 200
/** A check within the process takes one second at most. */
const limitMs = 3_000
const nowMs = () => performance.now()

export function startProbes(urls: Record<ServiceName, string>): Probes {
  const seen: Probe[] = []
  let running = true
  const watch = async (name: ServiceName) => {
    while (running) {
      const begunMs = nowMs()
      const { ready, why } = await readReadiness(urls[name])
      seen.push({ name, begunMs, tookMs: nowMs() - begunMs, ready, why })
      await pause(probeEveryMs)
    }
  }
  const watching = SERVICE_NAMES.map(watch)
  return {
    seen,
    stop: async () => {
      running = false
      await Promise.all(watching)
    },
  }
}

async function readReadiness(url: string): Promise<Pick<Probe, 'ready' | 'why'>> {
  try {
    const response = await fetch(`${url}/readyz`, { signal: AbortSignal.timeout(limitMs) })
    const { missing = {} } = (await response.json()) as { missing?: Record<string, string> }
    const why = Object.entries(missing).map(([name, fault]) => `${name} ${fault}`)
    return { ready: response.status === 200, why: why.join(', ') }
  } catch (error) {
    return { ready: false, why: `no response: ${(error as Error).message}` }
  }
}

/** A moment: relative in the text, exact with its offset on hover and focus, ISO when copied. */
import { useSyncExternalStore } from 'react'
import { usePreferences } from '../state/preferences.ts'
import { toExact, toIso, toRelative } from './clock.ts'
import { onServerTimeFound, serverNowMs } from './server-clock.ts'

const tickMs = 5_000
let nowMs = serverNowMs()
const listeners = new Set<() => void>()
const tick = () => {
  nowMs = serverNowMs()
  for (const listener of listeners) listener()
}
setInterval(tick, tickMs)
onServerTimeFound(tick)

/** The server's time now, as often as a relative time can change. */
export function useNowMs(): number {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    () => nowMs,
  )
}

/** The exact time in the chosen zone, with its offset. */
export function useExact(): (at: string | number) => string {
  const { zone } = usePreferences()
  return (at) => {
    const atMs = new Date(at).getTime()
    return toExact(atMs, zone === 'utc' ? 0 : -new Date(atMs).getTimezoneOffset())
  }
}

/**
 * @param exact shows the exact time as the text
 */
export function Time({ at, exact = false }: { at: string | null; exact?: boolean }) {
  // Only the next tick comes with it: what was read since the last one would seem to come.
  useNowMs()
  const toText = useExact()
  if (at === null) return <span className="text-muted">never</span>
  const atMs = Date.parse(at)
  const full = toText(at)
  const ago = toRelative(atMs, serverNowMs())
  return (
    <time
      className={exact ? undefined : 'whitespace-nowrap'}
      dateTime={toIso(atMs)}
      onCopy={(event) => {
        event.preventDefault()
        event.clipboardData.setData('text/plain', toIso(atMs))
      }}
      title={exact ? ago : full}
    >
      {exact ? full : ago}
    </time>
  )
}

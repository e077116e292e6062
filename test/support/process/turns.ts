// Time limits of tests whose both sides run in this process. A machine that stalls lets a timer end
// before what was ready to be read; turns of the event loop pass only as the work does.

const turnMs = 10

/**
 * Calls back when the event loop has turned once for every 10 ms of a time: at the earliest after
 * that time, and on a stalled machine later.
 * @returns what ends the wait
 */
export function afterTurns(ms: number, then: () => void): () => void {
  let left = Math.ceil(ms / turnMs)
  const timer = setInterval(() => {
    if (--left > 0) return
    clearInterval(timer)
    then()
  }, turnMs)
  return () => clearInterval(timer)
}

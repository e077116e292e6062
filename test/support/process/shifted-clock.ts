/**
 * Preloaded into a process (`node --import`) that needs a wrong wall clock: `Date` is off by the
 * first of SHIFTED_CLOCK_MS, and jumps to the next of them at every SIGWINCH (a signal that the
 * service ignores). The monotonic clock is unchanged, as on a machine whose clock is set.
 */
const shiftsMs = (process.env.SHIFTED_CLOCK_MS ?? '0').split(',').map(Number)
let at = 0

const RealDate = Date
const shiftedNow = () => RealDate.now() + shiftsMs[at % shiftsMs.length]!

globalThis.Date = new Proxy(RealDate, {
  construct: (target, given, newTarget) =>
    Reflect.construct(target, given.length === 0 ? [shiftedNow()] : given, newTarget) as object,
  apply: () => new RealDate(shiftedNow()).toString(),
  get: (target, name) => (name === 'now' ? shiftedNow : Reflect.get(target, name)),
})

process.on('SIGWINCH', () => {
  at++
})

export {}

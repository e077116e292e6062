// The orphan reaper: a separate process that stops the stack's children when the stack has ended.
// The stack writes one line per child to the reaper's standard input. When that pipe closes, the
// reaper stops every child that still runs, within two seconds.

import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'

import { sendSignal, startToken } from './launch.ts'

const GRACE_MS = 1_200

type Child = { pid: number; signal: NodeJS.Signals; started: string | null }

const children = new Map<number, Child>()

// Signals for the stack must not end the reaper.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => undefined)

for await (const line of createInterface({ input: process.stdin })) {
  const [verb, pidText, signal] = line.split(' ')
  const pid = Number(pidText)
  if (verb === '+') {
    children.set(pid, { pid, signal: signal as NodeJS.Signals, started: startToken(pid) })
  } else {
    children.delete(pid)
  }
}

const running = () =>
  [...children.values()].filter((child) => child.started !== null && isSame(child))
for (const child of running()) sendSignal(child.pid, child.signal)
const deadline = performance.now() + GRACE_MS
while (running().length > 0 && performance.now() < deadline) await sleep(20)
for (const child of running()) sendSignal(child.pid, 'SIGKILL')

function isSame(child: Child): boolean {
  return startToken(child.pid) === child.started
}

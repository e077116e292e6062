// The guard of a local stack: a process of its own that only waits for the stack to disappear.
// It reads one line per child on its standard input, a pipe whose other end the stack holds; when
// that end closes, for whatever reason, it ends every child that still runs, within two seconds.

import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'

import { sendSignal, startToken } from './launch.ts'

const GRACE_MS = 1_200

type Ward = { pid: number; signal: NodeJS.Signals; started: string | null }

const wards = new Map<number, Ward>()

// Signals meant for the stack must not end the one who watches over its end.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => undefined)

for await (const line of createInterface({ input: process.stdin })) {
  const [verb, pidText, signal] = line.split(' ')
  const pid = Number(pidText)
  if (verb === '+') {
    wards.set(pid, { pid, signal: signal as NodeJS.Signals, started: startToken(pid) })
  } else {
    wards.delete(pid)
  }
}

const remaining = () => [...wards.values()].filter((ward) => ward.started !== null && same(ward))
for (const ward of remaining()) sendSignal(ward.pid, ward.signal)
const deadline = performance.now() + GRACE_MS
while (remaining().length > 0 && performance.now() < deadline) await sleep(20)
for (const ward of remaining()) sendSignal(ward.pid, 'SIGKILL')

function same(ward: Ward): boolean {
  return startToken(ward.pid) === ward.started
}

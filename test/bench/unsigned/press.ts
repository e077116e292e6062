/** Sends one shape of traffic to a process for a bounded time, and measures what it cost. */
import { readFileSync, writeFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { setImmediate as nextTurn, setTimeout as pause } from 'node:timers/promises'
import { readCpuSeconds, readMemoryMb } from '../measured-process.ts'
import type { Shape } from './shapes.ts'

export type Cost = {
  /** That the process has read. */
  kilobytes: number
  connections: number
  answers: number
  /** Connections that were open at the end of the time. */
  open: number
  cpuMs: number
  /** Peak above what the process had before, in MB. */
  memoryMb: number
  peakMb: number
}

/** Of one shape: bytes of the wire, connections, and the time when the process is slow. */
const bytesMax = 6 * 1024 * 1024
const connectionsMax = 1_000
const pressMs = 1_200
/** How long the process may take to work off what it has received. */
const settleMs = 5_000

export type Pressed = {
  port: number
  pid: number
  /** Answers when the process has worked off what came before. */
  healthUrl: string
  /** The CPU of the idle process, as a share of one core. */
  idleShare: number
}

export async function press(
  { port, pid, healthUrl, idleShare }: Pressed,
  shape: Shape,
): Promise<Cost> {
  const startMs = performance.now()
  const before = readMemoryMb(pid).now
  resetPeak(pid)
  const cpuBefore = readCpuSeconds(pid)
  const readBefore = readBytesRead(pid)
  const opening = Buffer.from(shape.opening, 'latin1')
  const repeated = Buffer.from(shape.repeated ?? '', 'latin1')
  const sockets = new Set<Socket>()
  const untilMs = performance.now() + pressMs
  let [bytes, connections, answers] = [0, 0, 0]
  const isOver = () => performance.now() > untilMs || bytes > bytesMax
  const open = (): void => {
    if (isOver() || connections === connectionsMax) return
    connections++
    const socket = connect({ port, host: '127.0.0.1', noDelay: true })
    const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()))
    const write = (piece: Buffer) =>
      Promise.race([new Promise((resolve) => socket.write(piece, resolve)), closed])
    const send = async () => {
      await write(opening)
      bytes += opening.length
      while (repeated.length > 0 && !socket.destroyed && !isOver()) {
        await write(repeated)
        bytes += repeated.length
        if (shape.pauseMs === undefined) await nextTurn()
        else await pause(shape.pauseMs)
      }
    }
    sockets.add(socket)
    if (shape.unread !== true) {
      socket.on('data', (chunk) => {
        answers += chunk.toString('latin1').split('HTTP/1.1 ').length - 1
      })
    }
    socket.on('error', () => undefined)
    socket.once('connect', () => void send())
    socket.on('close', () => {
      sockets.delete(socket)
      open()
    })
  }
  for (let n = 0; n < shape.connections; n++) open()
  while (!isOver()) await pause(20)
  await settle(healthUrl)
  const still = sockets.size
  for (const socket of sockets) socket.destroy()
  await settle(healthUrl)
  const { peak } = readMemoryMb(pid)
  return {
    kilobytes: (readBytesRead(pid) - readBefore) / 1_024,
    connections,
    answers,
    open: still,
    cpuMs: Math.max(
      0,
      (readCpuSeconds(pid) - cpuBefore) * 1_000 - idleShare * (performance.now() - startMs),
    ),
    memoryMb: Math.max(0, peak - before),
    peakMb: peak,
  }
}

async function settle(healthUrl: string): Promise<void> {
  for (let turn = 0; turn < 3; turn++) {
    await fetch(healthUrl, { signal: AbortSignal.timeout(settleMs) }).catch(() => undefined)
    await pause(20)
  }
}

/** @returns the CPU of an idle process, as a share of one core */
export async function measureIdle(pid: number): Promise<number> {
  const startMs = performance.now()
  const before = readCpuSeconds(pid)
  await pause(1_500)
  return ((readCpuSeconds(pid) - before) * 1_000) / (performance.now() - startMs)
}

/** Bytes that the process has read so far, nearly all of them from its connections. */
function readBytesRead(pid: number): number {
  const [, bytes] = /^rchar: (\d+)$/m.exec(readFileSync(`/proc/${pid}/io`, 'utf8')) ?? []
  return Number(bytes)
}

/** Lets the system measure the peak of the memory anew. */
function resetPeak(pid: number): void {
  writeFileSync(`/proc/${pid}/clear_refs`, '5')
}

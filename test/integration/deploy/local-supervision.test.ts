// The supervision of a local stack: children that cannot outlive it, one stack per data folder,
// restarts, and bounded logs.

import { spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { afterAll, describe, expect, test } from 'vitest'
import {
  openChildLog,
  showJsonWarnings,
  showNatsWarnings,
} from '../../../deploy/local/stack/child-log.ts'
import { endLeftovers, lockDataDir } from '../../../deploy/local/stack/data-lock.ts'
import {
  createLauncher,
  endChild,
  exitOf,
  isAlive,
  type LaunchSpec,
  sendSignal,
  startToken,
} from '../../../deploy/local/stack/launch.ts'
import { isPortFree } from '../../../deploy/local/stack/ports/ports.ts'
import { natsStoreBroken } from '../../../deploy/local/stack/servers.ts'
import { superviseChild } from '../../../deploy/local/stack/supervised-child.ts'
import { survivors } from '../../support/process/stack.ts'
import { until } from '../../support/process/until.ts'

const projectDir = fileURLToPath(new URL('../../..', import.meta.url))
const workDir = mkdtempSync(join(tmpdir(), 'di-local-supervision-'))
const launcher = createLauncher({ pathVar: process.env.PATH })

afterAll(() => rmSync(workDir, { recursive: true, force: true }))

/** A program that ignores SIGTERM. */
const stubborn = `process.on("SIGTERM", () => {}); setInterval(() => {}, 1000)
  process.stdout.write("up")`

describe('a child of the stack', () => {
  // The program replaces the stack: it launches one stubborn child and prints both ids.
  const program = (useKernel: boolean, withReaper: boolean) => `
    import { createLauncher } from '${projectDir}deploy/local/stack/launch.ts'
    import { startOrphanReaper } from '${projectDir}deploy/local/stack/start-orphan-reaper.ts'
    const reaper = ${withReaper} ? startOrphanReaper(process.env) : { add: () => {}, pid: () => 0 }
    const { launch } = createLauncher({
      pathVar: process.env.PATH, useKernel: ${useKernel}, onLaunch: reaper.add,
    })
    const args = ['-e', ${JSON.stringify(stubborn)}]
    const child = launch({
      command: process.execPath, args, env: process.env,
      orphanSignal: ${withReaper} ? 'SIGTERM' : 'SIGKILL',
    })
    const print = (ids) => process.stdout.write(JSON.stringify(ids) + '\\n')
    // Before that the kernel may not watch the parent yet: the reaper covers that moment.
    child.stdout.once('data', () => print({ child: child.pid, reaper: reaper.pid() }))
    process.on('SIGUSR2', () => print({ reaper: reaper.pid() }))
    setInterval(() => {}, 1000)`

  async function startStandIn(useKernel: boolean, withReaper: boolean) {
    const args = ['--input-type=module', '-e', program(useKernel, withReaper)]
    const parent = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
    let printed = ''
    parent.stdout.on('data', (chunk) => {
      printed += chunk
    })
    const lines = () => printed.trim().split('\n').filter(Boolean)
    const first = await until('its ids', () => lines()[0])
    const ids = JSON.parse(first) as { child: number; reaper: number }
    return { parent, lines, ...ids }
  }

  test('ends when its parent is killed -9, by the kernel', async () => {
    expect(launcher.kernelBound).toBe(process.platform === 'linux')
    const { parent, child } = await startStandIn(true, false)
    parent.kill('SIGKILL')
    expect(await survivors([child], 2_000)).toEqual([])
  })

  test('ends within 2 s of kill -9 of its parent, by the orphan reaper, which ends too', async () => {
    const { parent, child, reaper } = await startStandIn(false, true)
    parent.kill('SIGKILL')
    expect(await survivors([child, reaper], 2_500)).toEqual([])
  })

  test('has a new reaper after the reaper itself was killed -9', async () => {
    const { parent, child, reaper, lines } = await startStandIn(false, true)
    sendSignal(reaper, 'SIGKILL')
    expect(await survivors([reaper], 2_000)).toEqual([])
    const next = await until('a new reaper', async () => {
      parent.kill('SIGUSR2')
      const now = JSON.parse(lines().at(-1) ?? '{}').reaper as number
      return now !== reaper && isAlive(now) ? now : null
    })
    expect(isAlive(child)).toBe(true)
    parent.kill('SIGKILL')
    expect(await survivors([child, next], 4_000)).toEqual([])
  })

  test('is killed when it does not end within its grace', async () => {
    const child = launcher.launch({
      command: process.execPath,
      args: ['-e', stubborn],
      env: process.env,
      orphanSignal: 'SIGKILL',
    })
    await new Promise((resolve) => child.stdout?.once('data', resolve))
    const exit = await endChild(child, { signal: 'SIGTERM', graceMs: 100 })
    expect(exit).toEqual({ code: null, signal: 'SIGKILL' })
  })
})

describe('the lock of a data folder', () => {
  const folder = (name: string) => {
    const dir = join(workDir, name)
    mkdirSync(dir)
    return dir
  }

  test('rejects a second owner and names the first', () => {
    const dir = folder('held')
    const lock = lockDataDir(dir)
    expect(() => lockDataDir(dir)).toThrow(`already running on ${dir}, pid ${process.pid}`)
    lock.release()
    lockDataDir(dir).release()
    expect(readdirSync(dir)).toEqual([])
  })

  test('is taken from an owner whose process id now belongs to another process', () => {
    const dir = folder('reused')
    const stale = { pid: process.pid, started: 'another time', children: [] }
    writeFileSync(join(dir, 'stack.lock'), JSON.stringify(stale))
    lockDataDir(dir).release()
  })

  test('is taken from a corrupt file', () => {
    const dir = folder('torn')
    writeFileSync(join(dir, 'stack.lock'), '{"pid": 1')
    lockDataDir(dir).release()
  })

  test('lists the processes left by a crashed owner, and only those are ended', async () => {
    const dir = folder('crashed')
    const spec: LaunchSpec = {
      command: process.execPath,
      args: ['-e', 'setInterval(() => {}, 1000)'],
      env: process.env,
      orphanSignal: 'SIGKILL',
    }
    const [left, bystander] = [launcher.launch(spec), launcher.launch(spec)]
    const pids = [left.pid as number, bystander.pid as number] as const
    const children = [
      { name: 'nats', pid: pids[0], started: startToken(pids[0]), signal: 'SIGTERM' },
      // The process id of a child that has ended, reused by another process.
      { name: 'scorer', pid: pids[1], started: 'another time', signal: 'SIGTERM' },
    ]
    const content = { pid: 2 ** 22 + 1, started: 'long ago', children }
    writeFileSync(join(dir, 'stack.lock'), JSON.stringify(content))
    const lock = lockDataDir(dir)
    expect((await endLeftovers(lock.leftovers)).map((child) => child.name)).toEqual(['nats'])
    expect(await survivors([pids[0]], 0)).toEqual([])
    expect(isAlive(pids[1])).toBe(true)
    lock.release()
    await endChild(bystander, { signal: 'SIGKILL', graceMs: 0 })
    await exitOf(left)
  })
})

describe('a supervised child', () => {
  function superviseScript(script: string, isReady: () => Promise<boolean>, killOnOutput?: RegExp) {
    const reported: string[] = []
    const pids: number[] = []
    const log = openChildLog({
      file: join(workDir, `child-${Math.random()}.log`),
      toShow: () => null,
      show: () => undefined,
    })
    const child = superviseChild(
      {
        name: 'scorer',
        launchSpec: () => ({
          command: process.execPath,
          args: ['-e', script],
          env: process.env,
          orphanSignal: 'SIGKILL',
        }),
        isReady,
        readyLimitMs: 10_000,
        stopSignal: 'SIGTERM',
        ...(killOnOutput === undefined ? {} : { killOnOutput }),
      },
      {
        launch: launcher.launch,
        log,
        report: (line) => reported.push(line),
        onPid: (pid, state) => (state === 'started' ? pids.push(pid) : 0),
      },
    )
    return { child, reported, pids, log }
  }

  test('is not started again after a stop in the pause between two tries', async () => {
    const { child, pids } = superviseScript('process.exit(1)', async () => false)
    const started = child.start(new AbortController().signal)
    started.catch(() => undefined)
    await until('its first end', () => pids.length > 0 && !isAlive(pids[0]!))
    // Into the pause of 200 ms, which begins 30 ms after the end.
    await sleep(100)
    const before = pids.length
    await child.stop(0)
    await expect(started).rejects.toThrow()
    expect(pids).toHaveLength(before)
  })

  test('is started again when it ends, with its last lines shown, until its stop', async () => {
    const script = 'process.stdout.write("my last words\\n"); setInterval(() => {}, 1000)'
    const { child, reported, pids, log } = superviseScript(script, async () => true)
    await child.start(new AbortController().signal)
    for (const round of [1, 2]) {
      await until('its words', () => log.lastLines().length > 0)
      sendSignal(child.pid() as number, 'SIGKILL')
      await until('a new process', () => pids.length === round + 1)
    }
    expect(reported[0]).toContain('ended (signal SIGKILL)')
    expect(reported[0]).toContain('my last words')
    await child.stop(1_000)
    expect(await survivors(pids, 0)).toEqual([])
    expect(pids).toHaveLength(3)
  })

  test('that still runs but reports a fatal error is killed and started again', async () => {
    const fatalLine = '[ERR] Filestore [TELEMETRY] Critical write error: no space left on device'
    const script = `process.on('SIGTERM', () => {}); setInterval(() => {}, 1000)
      setTimeout(() => process.stderr.write(${JSON.stringify(`${fatalLine}\n`)}), 200)`
    const { child, reported, pids } = superviseScript(script, async () => true, natsStoreBroken)
    await child.start(new AbortController().signal)
    await until('a new process', () => pids.length === 2)
    expect(reported[0]).toContain('ended (signal SIGKILL)')
    expect(reported[0]).toContain(fatalLine)
    await child.stop(0)
    expect(await survivors(pids, 1_000)).toEqual([])
  })

  test('that cannot start is reported with its reason, and not left running', async () => {
    const { child, pids } = superviseScript(
      'process.stderr.write("PORT is bad\\n"); process.exitCode = 3',
      async () => false,
    )
    await expect(child.start(new AbortController().signal)).rejects.toThrow(
      /ended at start \(code 3\)[\s\S]*PORT is bad/,
    )
    expect(await survivors(pids, 0)).toEqual([])
  })
})

describe('the log of a child', () => {
  test('has a bounded size, keeps the newest lines, and never floods the terminal', async () => {
    const shown: string[] = []
    const dir = join(workDir, 'logs')
    mkdirSync(dir)
    const log = openChildLog({
      file: join(dir, 'scorer.log'),
      toShow: showJsonWarnings,
      show: (line) => shown.push(line),
    })
    const stream = new PassThrough()
    log.follow(stream)
    const line = `${JSON.stringify({ level: 40, msg: 'x'.repeat(1_000) })}\n`
    for (let n = 0; n < 30_000; n++) {
      if (!stream.write(line)) await new Promise((resolve) => stream.once('drain', resolve))
    }
    stream.end('the end\n')
    await until('the end is read', () => log.lastLines().at(-1) === 'the end')
    log.close()
    const sizes = readdirSync(dir).map((name) => statSync(join(dir, name)).size)
    expect(sizes).toHaveLength(2)
    for (const size of sizes) expect(size).toBeLessThan(10 * 1024 ** 2)
    expect(shown.length).toBeLessThan(20)
  })

  test('shows warnings and errors only', () => {
    expect(showJsonWarnings('{"level":30,"msg":"fine"}')).toBeNull()
    const warning = '{"level":40,"msg":"lag","err":{"message":"slow"}}'
    expect(showJsonWarnings(warning)).toBe('warn lag: slow')
    expect(showJsonWarnings('(node:12) [DEP0001] DeprecationWarning: old')).toBeNull()
    expect(showJsonWarnings('The configuration is not valid:')).toContain('not valid')
    expect(showNatsWarnings('[1] 2025/01/01 10:00:00.000000 [INF] ready')).toBeNull()
    const slow = '[1] 2025/01/01 10:00:00.000000 [WRN] slow consumer'
    expect(showNatsWarnings(slow)).toBe('[WRN] slow consumer')
  })
})

test('a port in use is detected', async () => {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as { port: number }
  expect(await isPortFree(port)).toBe(false)
  await new Promise((resolve) => server.close(resolve))
  expect(await isPortFree(port)).toBe(true)
})

// A real nats-server for tests, configured exactly as the local stack's (JetStream on disk, synced
// before every acknowledgement). It always ends with the test process.

import type { ChildProcess } from 'node:child_process'
import { existsSync, readdirSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import {
  findNatsServer,
  natsGreets,
  natsLaunchSpec,
  natsUrl,
} from '../../../../deploy/local/nats/nats-server.ts'
import { awaitReady } from '../../../../deploy/local/stack/await-ready.ts'
import {
  createLauncher,
  endChild,
  exitOf,
  sendSignal,
} from '../../../../deploy/local/stack/launch.ts'
import { choosePort } from '../../../../deploy/local/stack/ports/ports.ts'
import { type NatsUser, natsUserNames } from '../../../../deploy/nats-users.ts'

const projectDir = fileURLToPath(new URL('../../../..', import.meta.url))

export type TestNats = {
  /** The URL of the operator, which has all permissions. */
  url: string
  /** The URL of the user of one process. */
  urlOf: (user: NatsUser) => string
  port: number
  dir: string
  version: string
  /** The server's own process id; changes at `restart`. */
  readonly pid: number
  /** Sends a signal and waits for the end when the signal ends it (all but STOP and CONT). */
  kill: (signal: NodeJS.Signals) => Promise<void>
  /** Ends the server, and removes its files unless the test passed a folder. */
  stop: () => Promise<void>
  /** Starts it again on the same port and files; ends it first when it runs. */
  restart: () => Promise<void>
}

/** The folder of a stream in the folder of its server. */
export function findStreamFiles(dir: string, stream: string): string {
  const accounts = join(dir, 'jetstream')
  const folders = readdirSync(accounts).map((account) => join(accounts, account, 'streams', stream))
  return folders.find((folder) => existsSync(folder))!
}

/**
 * Starts a nats-server on a free port. `dir` is the folder of its files (by default a fresh one);
 * `more` are further lines of its configuration; `syncAlways: false` leaves syncing to the server's
 * own default, every two minutes.
 */
export async function startNats(
  options: { dir?: string; port?: number; syncAlways?: boolean; more?: string[] } = {},
): Promise<TestNats> {
  const env = process.env
  const binary = await findNatsServer({ env, projectDir })
  const dir = options.dir ?? (await mkdtemp(join(tmpdir(), 'di-nats-')))
  const port = options.port ?? (await choosePort({}))
  const passwords = Object.fromEntries(
    natsUserNames.map((user) => [user, 'nats-test-password']),
  ) as Record<NatsUser, string>
  const { syncAlways, more = [] } = options
  const settings = { binary, dir, port, passwords, syncAlways, more }
  const launcher = createLauncher({ pathVar: env.PATH })
  let child: ChildProcess = await start()

  async function start(): Promise<ChildProcess> {
    const started = launcher.launch(natsLaunchSpec(settings, env))
    let output = ''
    const keep = (chunk: Buffer) => {
      output = (output + chunk).slice(-4_000)
    }
    started.stdout?.on('data', keep)
    started.stderr?.on('data', keep)
    try {
      const isReady = () => natsGreets(port)
      await awaitReady({ name: 'nats-server', child: started, isReady, limitMs: 20_000 })
    } catch (error) {
      started.kill('SIGKILL')
      throw new Error(`${(error as Error).message}\n${output}`)
    }
    return started
  }

  return {
    url: natsUrl(settings),
    urlOf: (user) => natsUrl(settings, user),
    port,
    dir,
    version: binary.version,
    get pid() {
      return child.pid as number
    },
    kill: async (signal) => {
      sendSignal(child.pid as number, signal)
      if (signal !== 'SIGSTOP' && signal !== 'SIGCONT') await exitOf(child)
    },
    stop: async () => {
      await endChild(child, { signal: 'SIGTERM', graceMs: 5_000 })
      if (options.dir === undefined) await rm(dir, { recursive: true, force: true })
    },
    restart: async () => {
      await endChild(child, { signal: 'SIGTERM', graceMs: 5_000 })
      child = await start()
    },
  }
}

// The embedded NATS server: finds or fetches a nats-server, writes its configuration and starts
// it. JetStream lives on disk and syncs before each acknowledgement (`sync_interval: always`), so
// a stored message survives a power cut.

import { chmodSync, existsSync, mkdirSync, renameSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'

import { oldestServers } from '#shared/core/base/server-versions.ts'
import { jetstreamAccount } from '#shared/core/permissions/nats-permissions.ts'
import { cacheFolder } from '#shared/io/process/cache-folder.ts'
import {
  type NatsUser,
  natsUserNames,
  OPERATOR,
  passwordVariable,
  renderNatsUsers,
} from '../../nats-users.ts'
import { findProgram, type LaunchSpec } from '../stack/launch.ts'
import { isListenedOn } from '../stack/ports/ports.ts'
import { StartError } from '../stack/settings.ts'
import { cachedNatsServer } from './nats-cache.ts'
import { fetchNatsServer } from './nats-fetch.ts'
import { findOldBinary, type NatsServerBinary, readNatsVersion } from './nats-version.ts'

const MAX_PAYLOAD = '8MB'
/**
 * Streams reserve their maximum size at creation, and by default the server allows three quarters
 * of the free disk. A laptop has less than a production stream may grow to.
 */
const MAX_FILE_STORE = '64GB'
const WAYS_OUT =
  `Set NATS_SERVER_BIN to a nats-server ${oldestServers.NATS} or newer, put one on the PATH (the ` +
  'package is called nats-server in Debian, Ubuntu and Homebrew), or set NATS_URL to a server ' +
  'that runs already.'

/**
 * Finds a nats-server that is new enough: `NATS_SERVER_BIN`, the PATH, the cache folder, and
 * finally a fetch into the cache. Throws an error with every remedy when there is none.
 */
export async function findNatsServer(options: {
  env: Record<string, string | undefined>
  projectDir: string
  report?: (line: string) => void
  signal?: AbortSignal
}): Promise<NatsServerBinary> {
  const report = options.report ?? (() => undefined)
  const named = options.env.NATS_SERVER_BIN
  if (named) {
    const binary = readNatsVersion(named)
    if (!binary)
      throw new StartError(`NATS_SERVER_BIN=${named} is not a nats-server that runs here`)
    const old = findOldBinary(binary)
    if (old !== null) throw new StartError(`NATS_SERVER_BIN=${named} ${old}`)
    return binary
  }
  const onPath = findProgram('nats-server', options.env.PATH)
  const ofPath = onPath === null ? null : readNatsVersion(onPath)
  if (ofPath && findOldBinary(ofPath) === null) return ofPath
  const cacheDir = cacheFolder(options.env, options.projectDir)
  const cached = await cachedNatsServer(cacheDir, report)
  if (cached && findOldBinary(cached) === null) return cached

  const { binary, reasons } = await fetchNatsServer({
    cacheDir,
    pathVar: options.env.PATH,
    report,
    signal: options.signal,
  })
  if (binary !== null) return binary
  const own = ofPath === null ? [] : [`${ofPath.file} ${findOldBinary(ofPath)}`]
  throw missingNatsServer([...own, ...reasons])
}

/** The error without a nats-server: why none could be fetched, and every remedy. */
export function missingNatsServer(reasons: string[]): StartError {
  const why = reasons.map((reason) => `  - ${reason}`).join('\n')
  return new StartError(`no nats-server found, and none could be fetched:\n${why}\n${WAYS_OUT}`)
}

export type NatsSettings = {
  binary: NatsServerBinary
  /** The folder of the configuration and JetStream's files. */
  dir: string
  port: number
  /** The passwords of all users in `deploy/nats-users.ts`: letters and digits, a letter first. */
  passwords: Readonly<Record<NatsUser, string>>
  /** By default a message is synced to disk before it is acknowledged. */
  syncAlways?: boolean | undefined
  /** More lines of the configuration. */
  more?: readonly string[]
}

/** The server's configuration file. Monitoring is off: only the client port is open. */
function natsConfig(settings: NatsSettings): string {
  const text = (value: string) => JSON.stringify(value)
  return [
    '# Written at every start of the local stack.',
    `listen: "127.0.0.1:${settings.port}"`,
    `max_payload: ${MAX_PAYLOAD}`,
    'jetstream {',
    `  store_dir: ${text(settings.dir)}`,
    `  max_file_store: ${MAX_FILE_STORE}`,
    ...(settings.syncAlways === false ? [] : ['  sync_interval: always']),
    '}',
    ...(settings.more ?? []),
    ...natsUserNames.map((user) => `${passwordVariable(user)}: ${text(settings.passwords[user])}`),
    renderNatsUsers(),
    '',
  ].join('\n')
}

/**
 * Half of the cores: the others are busy here, and Go's runtime searches for work on every core it
 * may use. With two cores an event costs nats-server a third less that way.
 */
const toGoCores = (cores: number) => String(Math.max(1, Math.floor(cores / 2)))

/**
 * Gives the streams of an earlier release, which were in the server's global account, to the
 * account that has JetStream now: an account is a folder, and its files do not name it.
 */
function adoptGlobalAccount(dir: string): void {
  const folderOf = (account: string) => join(dir, 'jetstream', account)
  const [before, now] = [folderOf('$G'), folderOf(jetstreamAccount)]
  if (existsSync(before) && !existsSync(now)) renameSync(before, now)
}

/** Writes the configuration and returns the launch spec. */
export function natsLaunchSpec(
  settings: NatsSettings,
  env: Record<string, string | undefined>,
): LaunchSpec {
  mkdirSync(settings.dir, { recursive: true, mode: 0o700 })
  adoptGlobalAccount(settings.dir)
  const file = join(settings.dir, 'nats-server.conf')
  writeFileSync(file, natsConfig(settings), { mode: 0o600 })
  chmodSync(file, 0o600)
  return {
    command: settings.binary.file,
    args: ['--config', file],
    env: { ...env, GOMAXPROCS: env.GOMAXPROCS ?? toGoCores(availableParallelism()) },
    orphanSignal: 'SIGTERM',
  }
}

/** The URL a user needs, credentials included. */
export function natsUrl(
  { port, passwords }: Pick<NatsSettings, 'port' | 'passwords'>,
  user: NatsUser = OPERATOR,
): string {
  return `nats://${user}:${passwords[user]}@127.0.0.1:${port}`
}

/**
 * True once the server greets on its port. nats-server opens it only after JetStream has recovered
 * its streams, so a greeting means that it is ready.
 */
export async function natsGreets(port: number): Promise<boolean> {
  if (!(await isListenedOn(port))) return false
  return new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1' })
    const end = (answer: boolean) => {
      socket.destroy()
      resolve(answer)
    }
    socket.setTimeout(1_000, () => end(false))
    socket.once('error', () => end(false))
    socket.once('close', () => end(false))
    socket.once('data', (bytes) => end(bytes.toString().startsWith('INFO ')))
  })
}

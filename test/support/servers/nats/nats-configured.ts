// A real nats-server with the test's own configuration: TLS, NKEYs, operators and accounts.

import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { nkeys } from 'nats'
import { jetstreamAccount, type NatsAccount } from '#shared/core/permissions/nats-permissions.ts'
import { findNatsServer } from '../../../../deploy/local/nats/nats-server.ts'
import { awaitReady } from '../../../../deploy/local/stack/await-ready.ts'
import { createLauncher, endChild } from '../../../../deploy/local/stack/launch.ts'
import { choosePort } from '../../../../deploy/local/stack/ports/ports.ts'
import { natsAccounts, toNatsClaims } from '../../../../deploy/nats-users.ts'

const projectDir = fileURLToPath(new URL('../../../..', import.meta.url))

/** A folder that is removed by `remove`. */
export function makeFolder(): { dir: string; remove: () => void } {
  const dir = mkdtempSync(join(tmpdir(), 'di-nats-tls-'))
  return { dir, remove: () => rmSync(dir, { recursive: true, force: true }) }
}

/** Starts a nats-server with these lines of configuration, on `port` or a free one. */
export async function startConfigured(
  dir: string,
  lines: string[],
  port?: number,
): Promise<{ port: number; stop: () => Promise<void> }> {
  const binary = await findNatsServer({ env: process.env, projectDir })
  const at = port ?? (await choosePort({}))
  const file = join(dir, `nats-${at}.conf`)
  writeFileSync(file, [`listen: "127.0.0.1:${at}"`, ...lines, ''].join('\n'))
  const launcher = createLauncher({ pathVar: process.env.PATH })
  const child = launcher.launch({
    command: binary.file,
    args: ['--config', file],
    env: process.env,
    orphanSignal: 'SIGKILL',
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream?.on('data', (chunk) => {
      output += chunk
    })
  }
  try {
    // With `handshake_first` it sends nothing before TLS.
    const isReady = async () => output.includes('Server is ready')
    await awaitReady({ name: 'nats-server', child, isReady, limitMs: 20_000 })
  } catch (error) {
    throw new Error(`${(error as Error).message}\n${output}`)
  }
  const stop = async () => void (await endChild(child, { signal: 'SIGTERM', graceMs: 5_000 }))
  return { port: at, stop }
}

export type Certificate = { cert: string; key: string }

/** A CA, and the certificates that it signs, as files in PEM. */
export function createCa(dir: string, name: string) {
  const run = (...args: string[]) => execFileSync('openssl', args, { cwd: dir, stdio: 'pipe' })
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes']
  run(
    ...['req', '-x509', ...key, '-keyout', `${name}.key`, '-out', `${name}.pem`],
    ...['-days', '2', '-subj', `/CN=${name}`, '-addext', 'basicConstraints=critical,CA:TRUE'],
  )
  return {
    caFile: join(dir, `${name}.pem`),
    /** @param names such as `IP:127.0.0.1,DNS:localhost` */
    sign: (subject: string, names: string): Certificate => {
      const at = `${name}-${subject}`
      run('req', ...key, '-keyout', `${at}.key`, '-out', `${at}.csr`, '-subj', `/CN=${subject}`)
      writeFileSync(join(dir, `${at}.ext`), `subjectAltName=${names}\n`)
      run(
        ...['x509', '-req', '-in', `${at}.csr`, '-CA', `${name}.pem`, '-CAkey', `${name}.key`],
        ...['-CAcreateserial', '-days', '2', '-extfile', `${at}.ext`, '-out', `${at}.pem`],
      )
      return { cert: join(dir, `${at}.pem`), key: join(dir, `${at}.key`) }
    },
  }
}

type KeyPair = ReturnType<typeof nkeys.createUser>
const seedOf = (pair: KeyPair) => Buffer.from(pair.getSeed()).toString()

/** A user's NKEY: the public key for the server, and its seed. */
export function createNkey(): { publicKey: string; seed: string } {
  const pair = nkeys.createUser()
  return { publicKey: pair.getPublicKey(), seed: seedOf(pair) }
}

/** NATS' own JWT: signed with the NKEY of its issuer. */
function toJwt(issuer: KeyPair, subject: KeyPair, name: string, claims: object): string {
  const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
  const body = {
    jti: name,
    iat: Math.floor(Date.now() / 1_000),
    iss: issuer.getPublicKey(),
    sub: subject.getPublicKey(),
    name,
    nats: { version: 2, ...claims },
  }
  const text = `${encode({ typ: 'JWT', alg: 'ed25519-nkey' })}.${encode(body)}`
  return `${text}.${Buffer.from(issuer.sign(Buffer.from(text))).toString('base64url')}`
}

/** What a JWT allows without a limit. */
const accountLimits = {
  subs: -1,
  data: -1,
  payload: -1,
  conn: -1,
  leaf: -1,
  imports: -1,
  exports: -1,
}
const userLimits = { subs: -1, data: -1, payload: -1 }
const storeLimits = { mem_storage: -1, disk_storage: -1, streams: -1, consumer: -1 }

/** A credentials file. */
const toCreds = (jwt: string, user: KeyPair): string =>
  [
    '-----BEGIN NATS USER JWT-----',
    jwt,
    '------END NATS USER JWT------',
    '',
    '-----BEGIN USER NKEY SEED-----',
    seedOf(user),
    '------END USER NKEY SEED------',
    '',
  ].join('\n')

/** The lines of an operator's server with these accounts, by public key. */
function toOperatorLines(operator: KeyPair, accounts: Record<string, string>): string[] {
  const preload = Object.entries(accounts).map(([key, jwt]) => `${key}: "${jwt}"`)
  return [
    `operator: "${toJwt(operator, operator, 'operator', { type: 'operator' })}"`,
    'resolver: MEMORY',
    `resolver_preload: { ${preload.join(', ')} }`,
  ]
}

/** An operator with one account and one user: configuration, and the user's credentials file. */
export function createOperatorMode(): { lines: string[]; creds: string } {
  const [operator, account, user] = [
    nkeys.createOperator(),
    nkeys.createAccount(),
    nkeys.createUser(),
  ]
  const limits = { ...accountLimits, wildcards: true }
  const accountJwt = toJwt(operator, account, 'service', { type: 'account', limits })
  const userJwt = toJwt(account, user, 'ingest', { type: 'user', pub: {}, sub: {}, ...userLimits })
  return {
    lines: toOperatorLines(operator, { [account.getPublicKey()]: accountJwt }),
    creds: toCreds(userJwt, user),
  }
}

/**
 * An operator with the accounts and users of the service, from the table of `nats-users.ts`:
 * configuration, and the credentials file of each user.
 */
export function createServiceAccounts(): { lines: string[]; creds: Record<string, string> } {
  const [operator, system] = [nkeys.createOperator(), nkeys.createAccount()]
  const pairs = natsAccounts.map((account) => [account, nkeys.createAccount()] as const)
  const keys = Object.fromEntries(
    pairs.map(([account, pair]) => [account, pair.getPublicKey()]),
  ) as Record<NatsAccount, string>
  const limits = { ...accountLimits, wildcards: true }
  const jwts: Record<string, string> = {
    [system.getPublicKey()]: toJwt(operator, system, 'SYS', { type: 'account', limits }),
  }
  const creds: Record<string, string> = {}
  for (const [account, pair] of pairs) {
    const { exports, imports, users } = toNatsClaims(account, keys)
    const store = account === jetstreamAccount ? storeLimits : {}
    const claims = { type: 'account', exports, imports, limits: { ...limits, ...store } }
    jwts[pair.getPublicKey()] = toJwt(operator, pair, account, claims)
    for (const [name, rights] of Object.entries(users)) {
      const user = nkeys.createUser()
      creds[name] = toCreds(
        toJwt(pair, user, name, { type: 'user', ...rights, ...userLimits }),
        user,
      )
    }
  }
  return {
    lines: [...toOperatorLines(operator, jwts), `system_account: ${system.getPublicKey()}`],
    creds,
  }
}

// The accounts and users of nats-server: one account with JetStream, and one for each process that
// only imports subjects from it; one user per process with the subjects of `processPermissions`,
// and `di`, the operator's, with all of JetStream. `npm run generate` writes `deploy/nats-users.conf`;
// `node deploy/nats-users.ts --claims` prints the exports and imports as JSON, as the JWT of an
// account has them.

import {
  jetstreamAccount,
  type NatsAccount,
  type NatsPermissions,
} from '../shared/core/permissions/nats-permissions.ts'
import {
  type ProcessName,
  processNames,
  processPermissions,
} from '../shared/core/permissions/process-permissions.ts'

export const OPERATOR = 'di'
export type NatsUser = ProcessName | typeof OPERATOR

/** The processes that connect to NATS, and the operator. */
export const natsUserNames: readonly NatsUser[] = [
  OPERATOR,
  ...processNames.filter((name) => processPermissions[name].nats !== null),
]

/** The name of the variable for a user's password in the server's configuration. */
export const passwordVariable = (user: NatsUser): string => `password_of_${user}`

/** A subject that another account imports from the account of JetStream. */
type Shared = {
  /** A service is a request, or a publish; a stream is what the other account reads. */
  kind: 'service' | 'stream'
  subject: string
  /** Whether one request gets several answers. */
  isStreamed: boolean
  accounts: NatsAccount[]
}

const rightsOf = (user: NatsUser): NatsPermissions | null =>
  user === OPERATOR ? null : processPermissions[user].nats

const accountOf = (user: NatsUser): NatsAccount => rightsOf(user)?.account ?? jetstreamAccount

/** All accounts; JetStream's is the first. */
export const natsAccounts: readonly NatsAccount[] = [...new Set(natsUserNames.map(accountOf))]

/** These verbs answer one request with several messages. */
const isStreamed = (subject: string) =>
  /^\$JS\.API\.(DIRECT\.GET|CONSUMER\.MSG\.NEXT)\./.test(subject)

/** Every subject that the account of JetStream exports, and to which accounts. */
function listShared(): Shared[] {
  const all = new Map<string, Shared>()
  for (const user of natsUserNames) {
    const rights = rightsOf(user)
    if (rights === null || rights.account === jetstreamAccount) continue
    // The inbox for answers is the account's own.
    const read = rights.subscribe.filter((subject) => !subject.startsWith('_INBOX.'))
    const add = (kind: Shared['kind']) => (subject: string) => {
      const key = `${kind} ${subject}`
      const shared = all.get(key) ?? {
        kind,
        subject,
        isStreamed: isStreamed(subject),
        accounts: [],
      }
      if (!shared.accounts.includes(rights.account)) shared.accounts.push(rights.account)
      all.set(key, shared)
    }
    rights.publish.forEach(add('service'))
    read.forEach(add('stream'))
  }
  return [...all.values()]
}

const text = (value: string) => JSON.stringify(value)

/**
 * The `accounts` block. Passwords are variables of the configuration, `password_of_...`, set before
 * it.
 */
export function renderNatsUsers(): string {
  return ['accounts {', ...natsAccounts.flatMap(renderAccount), '}', ''].join('\n')
}

function renderAccount(account: NatsAccount): string[] {
  const shared = listShared()
  const own =
    account === jetstreamAccount
      ? ['    jetstream: enabled', '    exports: [', ...shared.map(renderExport), '    ]']
      : [
          '    imports: [',
          ...shared.filter(({ accounts }) => accounts.includes(account)).map(renderImport),
          '    ]',
        ]
  const users = natsUserNames.filter((user) => accountOf(user) === account).flatMap(renderUser)
  return [`  ${account}: {`, '    users: [', ...users, '    ]', ...own, '  }']
}

function renderExport({ kind, subject, isStreamed: streamed, accounts }: Shared): string {
  const response = streamed ? ', response: stream' : ''
  return `      { ${kind}: ${text(subject)}${response}, accounts: [${accounts.join(', ')}] }`
}

function renderImport({ kind, subject }: Shared): string {
  return `      { ${kind}: { account: ${jetstreamAccount}, subject: ${text(subject)} } }`
}

function renderUser(user: NatsUser): string[] {
  const signIn = `user: ${user}, password: $${passwordVariable(user)}`
  const rights = rightsOf(user)
  if (rights === null) return [`      { ${signIn} }`]
  return [
    `      { ${signIn}, permissions: {`,
    '        publish: {',
    ...renderList('allow', rights.publish),
    ...renderList('deny', rights.denyPublish ?? []),
    '        }',
    '        subscribe: {',
    ...renderList('allow', rights.subscribe),
    '        }',
    '      } }',
  ]
}

/** `deploy/nats-users.conf`: the same with the passwords from the file of secrets. */
export function renderNatsUsersFile(): string {
  return [
    '# Made by `npm run generate` from shared/core/permissions/process-permissions.ts: do not edit.',
    '# Who may connect, and what each process may do.',
    '',
    '# The passwords. From /etc/nats this is /run/secrets/nats_passwords.',
    'include "../../run/secrets/nats_passwords"',
    '',
    renderNatsUsers(),
  ].join('\n')
}

function renderList(name: 'allow' | 'deny', subjects: readonly string[]): string[] {
  if (subjects.length === 0) return []
  return [
    `          ${name}: [`,
    ...[...new Set(subjects)].map((subject) => `            ${text(subject)}`),
    '          ]',
  ]
}

/** What the JWTs of an account and of its users say, as the tools of an operator take it. */
export type NatsClaims = {
  exports: object[]
  imports: object[]
  users: Record<string, { pub: object; sub: object }>
}

/**
 * The same table for a server in operator mode.
 * @param publicKeys of the accounts, `A...`
 */
export function toNatsClaims(
  account: NatsAccount,
  publicKeys: Readonly<Record<NatsAccount, string>>,
): NatsClaims {
  const shared = listShared()
  const exports = shared.map(({ kind, subject, isStreamed: streamed }) => ({
    name: subject,
    subject,
    type: kind,
    ...(streamed ? { response_type: 'Stream' } : {}),
  }))
  const imports = shared
    .filter(({ accounts }) => accounts.includes(account))
    .map(({ kind, subject }) => ({
      name: subject,
      subject,
      type: kind,
      account: publicKeys[jetstreamAccount],
    }))
  const users = natsUserNames.filter((user) => accountOf(user) === account)
  return {
    exports: account === jetstreamAccount ? exports : [],
    imports: account === jetstreamAccount ? [] : imports,
    users: Object.fromEntries(users.map((user) => [user, toUserClaims(user)])),
  }
}

/**
 * What a user of an account may read. What it may publish is what the account imports; a list of
 * that would make its JWT longer than a server takes by default.
 */
function toUserClaims(user: NatsUser): { pub: object; sub: object } {
  const rights = rightsOf(user)
  if (rights === null || rights.account === jetstreamAccount) return { pub: {}, sub: {} }
  return { pub: {}, sub: { allow: rights.subscribe } }
}

/** The public keys of the accounts are to be filled in. */
function renderClaims(): string {
  const keys = Object.fromEntries(
    natsAccounts.map((account) => [account, `PUBLIC_KEY_OF_${account}`]),
  ) as Record<NatsAccount, string>
  const claims = natsAccounts.map((account) => [account, toNatsClaims(account, keys)])
  return `${JSON.stringify(Object.fromEntries(claims), null, 2)}\n`
}

if (import.meta.main && process.argv[2] === '--claims') process.stdout.write(renderClaims())

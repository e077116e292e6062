// The users of nats-server: one per process with the subjects of `processPermissions`, and `di`,
// the operator's, with all of them. This program prints `deploy/nats-users.conf`:
//   node deploy/nats-users.ts > deploy/nats-users.conf

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

/**
 * The `authorization` block. Passwords are variables of the configuration, `password_of_...`, set
 * before it.
 */
export function renderNatsUsers(): string {
  const users = natsUserNames.flatMap((user) => {
    const signIn = `user: ${user}, password: $${passwordVariable(user)}`
    const rights = user === OPERATOR ? null : processPermissions[user].nats
    if (rights === null) return [`    { ${signIn} }`]
    return [
      `    { ${signIn}, permissions: {`,
      '      publish: {',
      ...renderList('allow', rights.publish),
      ...renderList('deny', rights.denyPublish ?? []),
      '      }',
      '      subscribe: {',
      ...renderList('allow', rights.subscribe),
      '      }',
      '    } }',
    ]
  })
  return ['authorization {', '  users: [', ...users, '  ]', '}', ''].join('\n')
}

/** `deploy/nats-users.conf`: the same with the passwords from the file of secrets. */
export function renderNatsUsersFile(): string {
  return [
    '# Who may connect, and what each process may do: made from shared/core/permissions/process-permissions.ts by',
    '#   node deploy/nats-users.ts > deploy/nats-users.conf',
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
    `        ${name}: [`,
    ...[...new Set(subjects)].map((subject) => `          ${JSON.stringify(subject)}`),
    '        ]',
  ]
}

if (import.meta.main) process.stdout.write(renderNatsUsersFile())

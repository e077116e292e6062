/**
 * Describes why a connection to a server fails, for `/readyz` and the log: the kind of failure,
 * never a credential, an address or a message of the server.
 */
import { ClickHouseError } from '@clickhouse/client'
import pg from 'pg'
import { pinnedClickhouseSettings } from '#shared/core/base/clickhouse-settings.ts'
import type { Log } from './log.ts'

/** By error code: those of Node, of OpenSSL, of the NATS client and SQLSTATEs. */
const reasons: Record<string, string> = {
  ECONNREFUSED: 'refuses the connection',
  CONNECTION_REFUSED: 'refuses the connection',
  ECONNRESET: 'breaks the connection off',
  EPIPE: 'breaks the connection off',
  ENOTFOUND: 'has an unknown host name',
  EAI_AGAIN: 'has a host name that cannot be resolved now',
  ETIMEDOUT: 'does not answer',
  TIMEOUT: 'does not answer',
  EHOSTUNREACH: 'cannot be reached by the network',
  ENETUNREACH: 'cannot be reached by the network',
  ENOENT: 'cannot be reached: a file of the TLS or credential settings is missing',
  EACCES: 'cannot be reached: a file of the TLS or credential settings cannot be read',
  // NATS
  AUTHORIZATION_VIOLATION: 'refuses the credentials',
  AUTHENTICATION_TIMEOUT: 'refuses the credentials: they arrived too late',
  AUTHENTICATION_EXPIRED: 'refuses the credentials: they have expired',
  BAD_CREDS: 'cannot be reached: the credentials file has no JWT and seed',
  BAD_AUTHENTICATION: 'refuses the credentials',
  SERVER_OPT_NA: 'offers no TLS, which the settings ask for',
  // PostgreSQL
  '28P01': 'refuses the credentials',
  '28000': 'refuses the credentials',
  '3D000': 'does not have the database',
  '42501': 'refuses this user',
  '53300': 'has too many connections',
  // Certificates
  SELF_SIGNED_CERT_IN_CHAIN: 'has a certificate of an unknown CA',
  DEPTH_ZERO_SELF_SIGNED_CERT: 'has a certificate of an unknown CA',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'has a certificate of an unknown CA',
  UNABLE_TO_GET_ISSUER_CERT: 'has a certificate of an unknown CA',
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: 'has a certificate of an unknown CA',
  CERT_HAS_EXPIRED: 'has a certificate that has expired',
  CERT_NOT_YET_VALID: 'has a certificate that is not valid yet',
  ERR_TLS_CERT_ALTNAME_INVALID: 'has a certificate for another host name',
}

/** A server that answers and cannot be used as it is. Its message is the end of a sentence. */
export class UnfitServerError extends Error {
  constructor(reason: string) {
    super(reason)
    this.name = 'UnfitServerError'
  }
}

/** @returns the reason, such as `refuses the credentials`, as the end of a sentence */
export function describeConnectFault(error: unknown): string {
  for (const one of toChain(error)) {
    const { code, message } = one as { code?: unknown; message?: unknown }
    const known = typeof code === 'string' ? reasons[code] : undefined
    if (known !== undefined) return known
    if (one instanceof UnfitServerError) return one.message
    if (one instanceof ClickHouseError) return describeClickhouse(one)
    if (typeof code === 'string' && code.startsWith('ERR_SSL_')) return describeTls(code)
    if (message === 'The server does not support SSL connections') {
      return 'offers no TLS, which the settings ask for'
    }
    if (one instanceof pg.DatabaseError) return `answers ${one.code ?? 'with an error'}`
  }
  return 'cannot be reached'
}

/** The wrapped errors, the innermost first. */
function toChain(error: unknown): unknown[] {
  const chain: unknown[] = []
  let one = error
  while (one !== null && typeof one === 'object' && chain.length < 8) {
    chain.unshift(one)
    const { cause, chainedError, errors } = one as {
      cause?: unknown
      chainedError?: unknown
      errors?: unknown[]
    }
    one = cause ?? chainedError ?? errors?.[0]
  }
  return chain
}

function describeClickhouse(error: ClickHouseError): string {
  const { type } = error
  return type === 'AUTHENTICATION_FAILED' || type === 'REQUIRED_PASSWORD'
    ? 'refuses the credentials'
    : (describeFixedSetting(error) ?? `answers ${type}`)
}

/**
 * @returns null, or which of our settings the user's profile fixes to another value, as the end of
 *   a sentence
 */
export function describeFixedSetting({ type, message }: ClickHouseError): string | null {
  const fixed = ['READONLY', 'SETTING_CONSTRAINT_VIOLATION', 'UNKNOWN_SETTING']
  if (!fixed.includes(type ?? '')) return null
  // Of the message only the name of a setting of ours.
  const names = message.match(/\w+/g) ?? []
  const name = names.find((word) => Object.hasOwn(pinnedClickhouseSettings, word))
  const wanted = name === undefined ? '' : pinnedClickhouseSettings[name]
  if (type === 'UNKNOWN_SETTING') return `does not know the setting ${name ?? ''}`.trim()
  const remedy = 'take its constraint, or readonly = 1, from the profile of this user'
  return `does not let this user set ${name ?? 'a setting'} = '${wanted}': ${remedy}`
}

function describeTls(code: string): string {
  return code.includes('CERTIFICATE_REQUIRED') || code.includes('BAD_CERTIFICATE')
    ? 'asks for a client certificate'
    : 'cannot agree on TLS'
}

export type FaultReporter = {
  /** Logs the reason at `warn` when it has changed. @returns the reason */
  failed: (error: unknown) => string
  /** Logs the recovery at `info`, after a failure. */
  worked: () => void
  /** The reason of the last failure; null once it works. */
  fault: () => string | null
}

/**
 * Logs each change of the state of a connection once.
 * @param server its name in the log, such as `NATS`
 */
export function createFaultReporter(server: string, log: Log): FaultReporter {
  let fault: string | null = null
  return {
    failed: (error) => {
      const reason = describeConnectFault(error)
      if (reason !== fault) log.warn({ server, reason }, `${server} ${reason}; trying again`)
      fault = reason
      return reason
    },
    worked: () => {
      if (fault !== null) log.info({ server }, `${server} answers`)
      fault = null
    },
    fault: () => fault,
  }
}

/**
 * Sends the telemetry of one install, and keeps its token: it registers when there is none, renews
 * it before it ends, and once after a refusal. Renewals are bounded, so a service that refuses
 * every token is not asked again for each event.
 */
import { installRenewBeforeMs, installRenewPauseMs } from '#shared/core/base/limits/client.ts'
import { checkNames, checkSignal, fail } from '../check-arguments.ts'
import { TelemetryRefusedError } from '../errors.ts'
import { type BodyEvidence, type InstallSendOptions, toBody } from '../send-telemetry.ts'
import type { CallOptions } from '../service-call.ts'
import type { IngestResult, Telemetry } from '../telemetry.ts'
import { checkInstall, checkSenderOptions } from './check-install.ts'
import type { Install, RegisterOptions } from './install-types.ts'

/**
 * A sender registers with `tenantId`, `hmacSecret` and `getEvidence`; or with `register`, where the
 * secret is on a server and the app asks that server.
 */
export type InstallSenderOptions = Pick<RegisterOptions, 'deviceId' | 'app'> &
  Partial<Pick<RegisterOptions, 'tenantId' | 'hmacSecret'>> &
  CallOptions & {
    /** Makes evidence for a challenge, at the first registration and at each renewal. */
    getEvidence?: NonNullable<RegisterOptions['getEvidence']>
    /** Registers through a server of yours, which returns what `registerInstall` returned there. */
    register?: () => Promise<Install>
    /** An install that was kept, so that a restart does not register again. */
    install?: Install
    /** Keeps an install, where the app alone can read it. Called after each registration. */
    onInstall?: (install: Install) => void | Promise<void>
    /** The clock, in ms since 1970; the runtime's unless given. */
    nowMs?: () => number
  }

export type InstallSender = {
  /**
   * Sends telemetry of the install, as `sendTelemetry` does, and registers where it must.
   * @throws TypeError, TelemetryRefusedError, TelemetryUnavailableError
   */
  send(
    telemetry: Telemetry | string | Uint8Array,
    options?: { attestation?: BodyEvidence; signal?: AbortSignal },
  ): Promise<IngestResult>
  /** The install that signs, registered where there is none or it ends soon. */
  getInstall(): Promise<Install>
}

type Calls = {
  register: (options: RegisterOptions) => Promise<Install>
  send: (telemetry: string | Uint8Array, options: InstallSendOptions) => Promise<IngestResult>
}

/** Makes a sender as `createInstallSender` does, of the calls of a runtime. */
export function makeInstallSender(calls: Calls, options: InstallSenderOptions): InstallSender {
  checkSenderOptions(options)
  const { install: given, onInstall, nowMs = Date.now, register: ask, ...registering } = options
  let kept: Install | null = given ?? null
  let underWay: Promise<Install> | null = null
  let pausedUntilMs = Number.NEGATIVE_INFINITY

  const register = async (): Promise<Install> => {
    const made = await (ask?.() ?? calls.register(registering as RegisterOptions))
    checkInstall('register()', made)
    kept = made
    await onInstall?.(made)
    return made
  }
  /** Sends that wait at the same time share one registration. */
  const renew = (): Promise<Install> => {
    underWay ??= register().finally(() => {
      underWay = null
    })
    return underWay
  }
  const mayRenew = (): boolean => {
    if (underWay !== null) return true
    if (nowMs() < pausedUntilMs) return false
    pausedUntilMs = nowMs() + installRenewPauseMs
    return true
  }
  const leftMs = (install: Install): number => Date.parse(install.expiresAt) - nowMs()

  const getInstall = async (): Promise<Install> => {
    const install = kept
    if (install === null || leftMs(install) <= 0) return renew()
    if (leftMs(install) > installRenewBeforeMs || !mayRenew()) return install
    // The token still holds, so a renewal that fails can wait.
    return renew().catch(() => install)
  }
  /** @returns null where a renewal must wait */
  const replace = async (refused: Install): Promise<Install | null> => {
    if (kept !== refused) return kept
    return mayRenew() ? renew() : null
  }

  return {
    getInstall,
    async send(telemetry, sending = {}) {
      const { attestation, signal } = checkSending(sending)
      const body = toBody(telemetry)
      checkDevice(telemetry, options.deviceId)
      const evidence = attestation === undefined ? {} : { attestation }
      const sendWith = ({ installToken: token, installKey: key }: Install) =>
        calls.send(body, {
          ...toCallOptions(registering, signal),
          install: { token, key },
          ...evidence,
        })
      const install = await untilAborted(getInstall(), signal)
      try {
        return await sendWith(install)
      } catch (error) {
        const isRefused = error instanceof TelemetryRefusedError && error.refusal.status === 401
        const fresh = isRefused ? await untilAborted(replace(install), signal) : null
        if (fresh === null) throw error
        return sendWith(fresh)
      }
    },
  }
}

function checkSending(sending: unknown): { attestation?: BodyEvidence; signal?: AbortSignal } {
  const values = checkNames('options', sending, ['attestation', 'signal'])
  checkSignal('signal', values.signal)
  return values
}

/** Telemetry of another device would be refused, and would cost a renewal. */
function checkDevice(telemetry: unknown, deviceId: string): void {
  if (typeof telemetry !== 'object' || telemetry === null || !('device_id' in telemetry)) return
  if (telemetry.device_id !== deviceId) {
    fail('telemetry.device_id', 'must be the deviceId of the install')
  }
}

/** The options of a call, with a signal that ends it beside the sender's own. */
function toCallOptions(options: CallOptions, signal: AbortSignal | undefined): CallOptions {
  const { ingestUrl, attemptsMax, attemptTimeoutMs, deadlineMs, fetch } = options
  const ends = signal ?? options.signal
  return {
    ingestUrl,
    ...(attemptsMax === undefined ? {} : { attemptsMax }),
    ...(attemptTimeoutMs === undefined ? {} : { attemptTimeoutMs }),
    ...(deadlineMs === undefined ? {} : { deadlineMs }),
    ...(ends === undefined ? {} : { signal: ends }),
    ...(fetch === undefined ? {} : { fetch }),
  }
}

/** Waits for what other sends wait for too, until the signal of this one aborts. */
async function untilAborted<Result>(
  result: Promise<Result>,
  signal: AbortSignal | undefined,
): Promise<Result> {
  if (signal === undefined) return result
  signal.throwIfAborted()
  let onAbort = () => {}
  const aborted = new Promise<never>((_, reject) => {
    onAbort = () => reject(signal.reason)
    signal.addEventListener('abort', onAbort)
  })
  return Promise.race([result, aborted]).finally(() => {
    signal.removeEventListener('abort', onAbort)
  })
}

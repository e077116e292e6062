/** What mistakes in calling the client package are made of: a right call, and what is said. */
import type * as nodeClient from '../../../shared/client/client.ts'
import type * as webClient from '../../../shared/client/webcrypto.ts'

/** Either entry of the package. */
export type Client = Pick<
  typeof nodeClient | typeof webClient,
  | 'createInstallSender'
  | 'fetchChallenge'
  | 'registerInstall'
  | 'sendBatch'
  | 'sendTelemetry'
  | 'signBody'
  | 'verifyWebhook'
>

/** What a right call is made of. */
export type RightClientCall = {
  client: Client
  telemetry: nodeClient.Telemetry
  options: nodeClient.SendOptions
  webhook: { body: string; headers: Record<string, string>; secret: string; nowMs: number }
  apiKey: string
}

export type ClientMistake = {
  name: string
  make: (right: RightClientCall) => unknown
  /** The name of the error. */
  error: 'TypeError' | 'TelemetryRefusedError' | 'WebhookVerificationError'
  /** Texts of its message, so that its reader knows what to change. */
  says: string[]
}

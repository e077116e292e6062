/**
 * `device-intelligence/client`: sign and send telemetry, verify webhooks, and map what mobile SDKs
 * report to `signals`. It needs Node's `fetch` and `node:crypto`, and no package.
 */
export { signBody } from '#shared/core/telemetry/signature.ts'
export {
  type BodyError,
  type Refusal,
  TelemetryRefusedError,
  TelemetryUnavailableError,
  type WebhookFault,
  WebhookVerificationError,
} from './errors.ts'
export { type SendOptions, sendTelemetry } from './send-telemetry.ts'
export type {
  Action,
  Alert,
  AlertPage,
  Category,
  CategorySignals,
  Device,
  Flag,
  IngestResult,
  PartialSignals,
  Signals,
  Telemetry,
} from './telemetry.ts'
export {
  type VerifyOptions,
  verifyWebhook,
  type WebhookDelivery,
  type WebhookHeaders,
} from './verify-webhook.ts'

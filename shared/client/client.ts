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
export { type AppAttestReport, fromAppAttest } from './mappings/app-attest.ts'
export { type FlutterRaspReport, fromFlutterRasp } from './mappings/flutter-rasp.ts'
export { type FreeRaspReport, fromFreeRasp } from './mappings/freerasp.ts'
export {
  fromIosSecuritySuite,
  type IosSecuritySuiteReport,
} from './mappings/ios-security-suite.ts'
export { fromJailMonkey, type JailMonkeyReport } from './mappings/jail-monkey.ts'
export { mergeSignals } from './mappings/merge-signals.ts'
export {
  type ExpectedRequest,
  fromPlayIntegrity,
  type PlayIntegrityPayload,
} from './mappings/play-integrity.ts'
export { fromRootBeer, type RootBeerReport } from './mappings/rootbeer.ts'
export { type SendOptions, sendTelemetry } from './send-telemetry.ts'
export type {
  Action,
  Alert,
  AlertPage,
  BooleanSignal,
  Category,
  CategorySignals,
  Device,
  Flag,
  IngestResult,
  PartialSignals,
  Signals,
  SignalWarning,
  Telemetry,
} from './telemetry.ts'
export {
  type VerifyOptions,
  verifyWebhook,
  type WebhookDelivery,
  type WebhookHeaders,
} from './verify-webhook.ts'

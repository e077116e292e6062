/** What both entries of the client package have: errors, mappings and types. */
export {
  type BodyError,
  type LastAttempt,
  type Refusal,
  TelemetryRefusedError,
  TelemetryUnavailableError,
  type VerdictFault,
  VerdictKeysError,
  VerdictVerificationError,
  type WebhookFault,
  WebhookVerificationError,
} from './errors.ts'
export type { InstallSender, InstallSenderOptions } from './installs/install-sender.ts'
export type {
  Challenge,
  Install,
  InstallApp,
  InstallAttestation,
  InstallEvidence,
  RegisterOptions,
} from './installs/install-types.ts'
export { type AppAttestReport, fromAppAttest } from './mappings/app-attest.ts'
export { type AppdomeReport, fromAppdome } from './mappings/appdome.ts'
export {
  type FingerprintEvent,
  type FingerprintReport,
  fromFingerprint,
} from './mappings/fingerprint.ts'
export { type FlutterRaspReport, fromFlutterRasp } from './mappings/flutter-rasp.ts'
export { type FreeRaspReport, fromFreeRasp } from './mappings/freerasp.ts'
export {
  type ExpectedHuaweiApp,
  fromHuaweiSysIntegrity,
  type HuaweiIntegrityPayload,
} from './mappings/huawei-sys-integrity.ts'
export { fromIncognia, type IncogniaReport } from './mappings/incognia.ts'
export {
  fromIosSecuritySuite,
  type IosSecuritySuiteReport,
} from './mappings/ios-security-suite.ts'
export { fromJailMonkey, type JailMonkeyReport } from './mappings/jail-monkey.ts'
export { mergeSignals } from './mappings/merge-signals.ts'
export { fromFields } from './mappings/platform-signals.ts'
export {
  type ExpectedRequest,
  fromPlayIntegrity,
  type PlayIntegrityAnswer,
  type PlayIntegrityPayload,
} from './mappings/play-integrity.ts'
export { fromRootBeer, type RootBeerReport } from './mappings/rootbeer.ts'
export { fromSardine, type SardineReport } from './mappings/sardine.ts'
export type {
  BodyEvidence,
  InstallCredentials,
  InstallSendOptions,
  SendOptions,
} from './send-telemetry.ts'
export type { CallOptions } from './service-call.ts'
export type {
  Action,
  Alert,
  AlertPage,
  BooleanSignal,
  Category,
  CategorySignals,
  Device,
  Flag,
  SignalWarning,
} from './service-types.ts'
export type {
  BatchResult,
  IngestResult,
  InvalidEvent,
  PartialSignals,
  SentDevice,
  Signals,
  Telemetry,
} from './telemetry.ts'
export {
  type VerdictKey,
  type VerdictKeySet,
  type VerdictKeySource,
  type VerdictKeysStatus,
  verdictKeysStatus,
} from './verdicts/verdict-keys.ts'
export type { Verdict } from './verdicts/verdict-token.ts'
export type { VerifyVerdictOptions } from './verdicts/verify-verdict.ts'
export type { VerifyOptions, WebhookDelivery, WebhookHeaders } from './webhook-check.ts'

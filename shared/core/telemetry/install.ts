/**
 * What a submission tells of the app and the phone beyond the required members. SDKs put these into
 * `app` and `device`, into `sdk_meta`, or beside them.
 */
import { metaCharactersMax } from '#shared/core/base/limits/telemetry.ts'
import { isObject, type Telemetry } from './submission.ts'

/** Each is empty when the submission has no such text. */
export type Install = {
  appVersion: string
  osVersion: string
  deviceBrand: string
  deviceModel: string
}

/** Reads the facts; the first place that has a text counts. */
export function readInstall(body: Telemetry): Install {
  const { sdk_meta: meta } = body
  const app = body.app
  const device = body.device
  return {
    appVersion: firstText(memberOf(app, 'version'), meta.app_version, body.app_version),
    osVersion: firstText(memberOf(device, 'os_version'), meta.os_version, body.os_version),
    deviceBrand: firstText(memberOf(device, 'brand'), meta.device_brand, body.device_brand),
    deviceModel: firstText(memberOf(device, 'model'), meta.device_model, body.device_model),
  }
}

const memberOf = (value: unknown, name: string): unknown =>
  isObject(value) ? value[name] : undefined

function firstText(...values: unknown[]): string {
  for (const value of values) {
    if (typeof value === 'string' && value !== '') return value.slice(0, metaCharactersMax)
  }
  return ''
}

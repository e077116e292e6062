/** The fleet as the API answers it, and how its parts are written. */
import type { AnswerOf } from '../../api/client.ts'

export type Fleet = AnswerOf<'/admin/v1/tenants/{tenant_id}/fleet', 'get'>

export const toVersionName = (version: { platform: string; sdk_version: string }): string =>
  `${version.platform || 'no platform'} ${version.sdk_version || 'no version'}`

/** Small shares with a digit more, so that they are not 0 %. */
export const toPercent = (share: number): string =>
  `${(share * 100).toFixed(share < 0.1 && share > 0 ? 1 : 0)} %`

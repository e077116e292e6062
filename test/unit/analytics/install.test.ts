// What a submission says of the app and the phone, wherever SDKs put it.
import { describe, expect, it } from 'vitest'
import { readInstall } from '#shared/core/telemetry/install.ts'
import type { Telemetry } from '#shared/core/telemetry/submission.ts'

const meta = { sdk_version: '1', platform: 'ios', batch_type: 'start' }
const read = (extra: object) => readInstall({ sdk_meta: meta, ...extra } as Telemetry)
const nothing = { appVersion: '', osVersion: '', deviceBrand: '', deviceModel: '' }

describe('app and phone', () => {
  it('are read from app and device, from sdk_meta, and beside them', () => {
    const found = { appVersion: '7.1', osVersion: '17', deviceBrand: 'ACME', deviceModel: 'One' }
    const flat = { app_version: '7.1', os_version: '17', device_brand: 'ACME', device_model: 'One' }
    const device = { os_version: '17', brand: 'ACME', model: 'One' }
    expect(read({ app: { version: '7.1' }, device })).toEqual(found)
    expect(read({ sdk_meta: { ...meta, ...flat } })).toEqual(found)
    expect(read(flat)).toEqual(found)
    expect(read({ app: { version: '' }, device: null, ...flat })).toEqual(found)
  })

  it('are empty where the submission has no text', () => {
    for (const odd of [{}, { app: null, device: 7 }, { app: ['x'], app_version: 7 }]) {
      expect(read(odd)).toEqual(nothing)
    }
  })

  it('are at most as long as other free texts', () => {
    expect(read({ app_version: 'x'.repeat(500) }).appVersion).toHaveLength(128)
  })
})

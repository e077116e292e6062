/** A phone as the page reads it, and the changes of which installs are on it. */
import { type AnswerOf, api, ok } from '../../api/client.ts'

export type PhonePage = AnswerOf<'/admin/v1/tenants/{tenant_id}/phones/{phone_id}', 'get'>
export type Phone = PhonePage['phone']
export type Install = Phone['installs'][number]
export type Evidence = Install['evidence'][number]
export type Correction = PhonePage['corrections'][number]

/** The key of all phones of a tenant: a correction changes two of them. */
export const phonesKey = (tenant: string) => ['phones', tenant]

export const loadPhone = (tenant: string, phoneId: string) =>
  ok(
    api.GET('/admin/v1/tenants/{tenant_id}/phones/{phone_id}', {
      params: { path: { tenant_id: tenant, phone_id: phoneId } },
    }),
  )

export type NewCorrection = {
  device_id: string
  /** Null splits it off. */
  phone_id: string | null
  reason: string
  expected_phone_id?: string
}

export const correct = (tenant: string, body: NewCorrection) =>
  ok(
    api.POST('/admin/v1/tenants/{tenant_id}/phone-corrections', {
      params: { path: { tenant_id: tenant } },
      body,
    }),
  )

export const undo = (tenant: string, correctionId: string) =>
  ok(
    api.POST('/admin/v1/tenants/{tenant_id}/phone-corrections/{correction_id}/undo', {
      params: { path: { tenant_id: tenant, correction_id: correctionId } },
    }),
  )

/** Whether it can be split off: the first install of a phone is what the phone is named after. */
export const maySplit = (install: Install, phoneId: string): boolean =>
  install.link === 'linked' ||
  (install.link === 'corrected' && install.decided_phone_id !== phoneId)

/** Requests and answers of the routes of operators, sessions and invitations. */
import { z } from 'zod'
import { nameCharactersMax } from '#shared/core/base/limits/http.ts'
import { operatorText } from '#shared/core/http/operator-text.ts'
import { emailSchema } from '#shared/core/operators/email-schema.ts'
import { emailCharactersMax, tokenPattern } from '#shared/core/operators/operator-credentials.ts'
import { passwordCharactersMax } from '#shared/core/operators/password-rules.ts'
import { roles } from '#shared/core/operators/roles.ts'
import { invitationHoursDefault, invitationHoursMax } from '#shared/core/operators/session-times.ts'
import { idSchema, tenantIdSchema } from '../http/schemas.ts'

/** Tenants that one operator may be limited to. */
const scopeMax = 1_000

const roleSchema = z.enum(roles)
const scopeSchema = z
  .union([z.literal('all'), z.array(tenantIdSchema).min(1).max(scopeMax)])
  .describe('`all`, or the slugs of the tenants that the operator may see')
/** In characters of any kind, so that no text is refused before it is compared. */
const typedSchema = z.string().max(2 * passwordCharactersMax)
const codeSchema = z.string().max(64).describe('of the authenticator app, or a recovery code')
const nameSchema = operatorText(nameCharactersMax)

export const signInBody = z.strictObject({
  email: z.string().max(emailCharactersMax),
  password: typedSchema,
  code: codeSchema.optional(),
})
export const stepUpBody = z
  .strictObject({ password: typedSchema.optional(), code: codeSchema.optional() })
  .refine(
    ({ password, code }) => password !== undefined || code !== undefined,
    'must have password or code',
  )
export const passwordBody = z.strictObject({ current: typedSchema, password: typedSchema })
export const codeBody = z.strictObject({ code: codeSchema })

const operatorSchema = z.object({
  operator_id: z.string(),
  email: z.string(),
  name: z.string(),
  role: roleSchema,
  tenants: z.union([z.literal('all'), z.array(z.string())]),
  totp: z.boolean(),
  password: z.boolean().describe('whether there is a password'),
  oidc: z.boolean().describe('whether an identity of the identity provider is bound'),
})
const sessionSchema = z.object({
  session_id: z.string(),
  created_at: z.string(),
  expires_at: z.string(),
  idle_expires_at: z.string().describe('when it ends unless it is used'),
  signed_in_by: z.enum(['password', 'oidc', 'link']),
  step_up_until: z.string().nullable(),
})
export const signedInSchema = z
  .object({
    operator: operatorSchema,
    session: sessionSchema,
    step_up_by: z
      .array(z.enum(['code', 'password', 'oidc']))
      .describe('how this session can step up'),
    must_enrol: z.boolean().describe('TOTP must be set up before anything else'),
  })
  .meta({ id: 'SignedIn' })

export const sessionsQuery = z.strictObject({
  operator_id: idSchema.optional().describe('of another operator; for administrators'),
})
export const sessionParams = z.object({ session_id: idSchema })
export const sessionsSchema = z.object({
  data: z.array(
    sessionSchema.extend({
      operator_id: z.string(),
      last_used_at: z.string(),
      address: z.string(),
      user_agent: z.string(),
      current: z.boolean().describe('the session of this call'),
    }),
  ),
})

export const totpSetupSchema = z
  .object({ secret: z.string(), otpauth_url: z.string() })
  .describe('For an authenticator app; not in force until a code is confirmed.')
export const recoveryCodesSchema = z
  .object({ recovery_codes: z.array(z.string()) })
  .describe('Each signs in once in place of a code; the only time they are shown.')

export const listedOperatorSchema = operatorSchema.extend({
  disabled: z.boolean(),
  created_at: z.string(),
  created_by: z.string(),
  last_signed_in_at: z.string().nullable(),
})
export const operatorsSchema = z.object({ data: z.array(listedOperatorSchema) })
export const operatorParams = z.object({ operator_id: idSchema })
export const operatorBody = z.strictObject({
  role: roleSchema.optional(),
  tenants: scopeSchema.optional(),
  disabled: z.boolean().optional(),
  name: nameSchema.optional(),
})

export const inviteBody = z.strictObject({
  email: emailSchema,
  role: roleSchema,
  tenants: scopeSchema.default('all'),
  name: nameSchema.default(''),
  valid_hours: z.number().int().min(1).max(invitationHoursMax).default(invitationHoursDefault),
})
export const invitedSchema = z
  .object({ invitation_id: z.string(), url: z.string(), expires_at: z.string() })
  .describe('The only time that the link is shown. It works once.')
export const invitationsSchema = z.object({
  data: z.array(
    z.object({
      invitation_id: z.string(),
      email: z.string(),
      name: z.string(),
      role: roleSchema,
      tenants: z.union([z.literal('all'), z.array(z.string())]),
      state: z.enum(['open', 'accepted', 'revoked', 'expired']),
      created_at: z.string(),
      created_by: z.string(),
      expires_at: z.string(),
    }),
  ),
})
export const withdrawBody = z.strictObject({
  invitation_id: z.string().regex(/^inv_[A-Za-z0-9_-]{1,64}$/, 'must be the id of an invitation'),
})
export const withdrawnSchema = z.object({ invitation_id: z.string(), email: z.string() })
export const invitationParams = z.object({
  token: z.string().regex(tokenPattern, 'must be the token of an invitation'),
})
export const shownInvitationSchema = z.object({
  email: z.string(),
  role: roleSchema,
  reset: z.boolean().describe('whether it is for a new password of an account that exists'),
  expires_at: z.string(),
})
export const acceptBody = z.strictObject({ name: nameSchema, password: typedSchema })

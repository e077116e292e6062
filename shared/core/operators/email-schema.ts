/** The schema of an operator's email. */
import { operatorText } from '#shared/core/http/operator-text.ts'
import { emailCharactersMax, emailPattern, normalizeEmail } from './operator-credentials.ts'

/** The email of an operator, in its one form. */
export const emailSchema = operatorText(emailCharactersMax)
  .refine((text) => emailPattern.test(text), 'must be an email address')
  .transform(normalizeEmail)
  .meta({ examples: ['ada@example.com'] })

/**
 * Which sessions must set up a second factor before anything else. A rule is of a tenant, and
 * covers everyone who may see it, or of the whole console. Pure.
 */

/** `tenantId` null is the rule of all operators. */
export type SecondFactorRule = { tenantId: string | null; sinceMs: number }

/**
 * Whether a session may do nothing but set TOTP up. One through single sign-on is exempt, since the
 * identity provider asks for a second factor; one that began before the rule goes on until its end.
 * @param requiredSinceMs when the first rule that covers the operator was made; null without one
 */
export const mustEnrol = (
  { totp }: { totp: boolean },
  { signedInBy, createdAtMs }: { signedInBy: 'password' | 'oidc' | 'link'; createdAtMs: number },
  requiredSinceMs: number | null,
): boolean =>
  requiredSinceMs !== null && !totp && signedInBy !== 'oidc' && createdAtMs >= requiredSinceMs

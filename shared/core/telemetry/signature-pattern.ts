/** The one spelling of a signature. It stands alone, since clients without Node need it too. */

/**
 * The canonical base64 of 32 bytes: 43 characters of the standard alphabet, the last with zero
 * spare bits, and one pad. Node's decoder accepts at least eight other spellings.
 */
export const signaturePattern = /^[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=$/

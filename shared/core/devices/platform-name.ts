/** The one name of a platform. */

/**
 * The platform in one spelling, as the views of the database `analytics` have it: SDKs spell it in
 * several ways.
 * @returns `android`, `ios`, or another in lower case
 */
export function toPlatform(sent: string): string {
  const platform = sent.toLowerCase().trim()
  if (platform.startsWith('android')) return 'android'
  return /^(?:ios|iphone|ipad)/.test(platform) ? 'ios' : platform
}

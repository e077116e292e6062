/**
 * Money of labels: a decimal text and a currency of ISO 4217. Amounts are texts in JSON and
 * decimals in both databases, so that no sum passes through a binary number; currencies are never
 * converted or added together.
 */
import { amountDigitsMax } from '#shared/core/base/limits/outcomes.ts'

/** Digits behind the point, by currency; of most it is two. */
const minorUnits: Readonly<Record<number, string>> = {
  0: 'BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF',
  2: `AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BGN BMD BND BOB BOV BRL BSD BTN BWP BYN BZD
    CAD CDF CHE CHF CHW CNY COP COU CRC CUP CVE CZK DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS
    GIP GMD GTQ GYD HKD HNL HTG HUF IDR ILS INR IRR JMD KES KGS KHR KPW KYD KZT LAK LBP LKR LRD LSL
    MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN MXV MYR MZN NAD NGN NIO NOK NPR NZD PAB PEN PGK
    PHP PKR PLN QAR RON RSD RUB SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SVC SYP SZL THB TJS
    TMT TOP TRY TTD TWD TZS UAH USD USN UYU UZS VED VES WST XCD XCG YER ZAR ZMW ZWG`,
  3: 'BHD IQD JOD KWD LYD OMR TND',
  4: 'CLF UYW',
}

const digitsOf: ReadonlyMap<string, number> = new Map(
  Object.entries(minorUnits).flatMap(([digits, codes]) =>
    codes.split(/\s+/).map((code) => [code, Number(digits)] as const),
  ),
)

/** Whether it is the code of a currency in use, in capitals. */
export const isCurrency = (code: string): boolean => digitsOf.has(code)

export const amountPattern = new RegExp(
  `^(?:0|[1-9]\\d{0,${amountDigitsMax - 1}})(?:\\.\\d{1,4})?$`,
)

/**
 * What is wrong with an amount of a currency, as the rest of a sentence; null when nothing is.
 * @param amount fits `amountPattern`
 */
export function findAmountFault(amount: string, currency: string): string | null {
  const digits = digitsOf.get(currency)
  if (digits === undefined) return null
  const behind = amount.split('.')[1]?.length ?? 0
  if (behind <= digits) return null
  return digits === 0
    ? `has digits behind the point, which ${currency} has not`
    : `has ${behind} digits behind the point; ${currency} has ${digits}`
}

/** Without the zeros at its end. */
function trimZeros(digits: string): string {
  let end = digits.length
  while (digits[end - 1] === '0') end--
  return digits.slice(0, end)
}

/** An amount as its currency writes it, of any decimal text: 129.9000 EUR is 129.90. */
export function formatAmount(amount: string, currency: string): string {
  const [whole = '0', behind = ''] = amount.split('.')
  const digits = digitsOf.get(currency) ?? 2
  const kept = trimZeros(behind).padEnd(digits, '0')
  return kept === '' ? whole : `${whole}.${kept}`
}

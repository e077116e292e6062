/**
 * SQL: a `LatestConnection` of the column `connection`, or of an aggregate of it.
 * @param latest an expression of the column's type
 */
export const toConnectionSql = (latest: string): string => `(
    toUnixTimestamp64Milli(tupleElement(${latest}, 'at')), tupleElement(${latest}, 'network'),
    tupleElement(${latest}, 'country'), tupleElement(${latest}, 'asn'),
    tupleElement(${latest}, 'organization'), tupleElement(${latest}, 'kinds')
  )`

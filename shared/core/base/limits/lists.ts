/**
 * Bounds of allow and deny lists, and of network data: lists of networks and databases. Those files
 * are an operator's, but their contents come from elsewhere, so every bound is checked before the
 * work that it limits. `npm run bench -- network` measures them.
 */

/**
 * Entries of one tenant, expired ones included. At 120 bytes of JSON each they are 1.2 MB in the
 * tenant directory, in sixteen shards of 75 KB.
 */
export const listEntriesMax = 10_000

/**
 * Entries of all tenants: twenty full lists. They are 24 MB in the tenant directory, and at 400
 * bytes each 80 MB in the memory of an edge.
 */
export const listEntriesOfAllMax = 200_000

/**
 * Entries of one tenant for networks, operators and countries, which are among those above. An edge
 * has them as one table, so a change writes all of them: 150 KB at 150 bytes each. Whole lists of
 * networks are files (see below).
 */
export const listedConnectionsMax = 1_000

/** Shards of a tenant's lists of devices and users: a change writes one of them. */
export const listShards = 16

/** Entries in one answer, and without a `limit`. */
export const listPageMax = 500
export const listPageDefault = 50

/**
 * How often a console looks for shards to project. With the write to NATS, which takes some
 * milliseconds, a change is at every edge well within a second.
 */
export const listProjectMs = 200

/** Shards that one look projects: 640 a second. */
export const listProjectMax = 128

/** Bytes of one file. GeoLite2 City has 65 MB, DB-IP's city database 130 MB. */
export const networkFileBytesMax = 200 * 1024 * 1024

/** Databases in the folder; a country, an ASN, a city and an anonymity database are four. */
export const networkDatabasesMax = 16

/**
 * Networks of one list. The largest public ones, of all hosting networks, have 100,000. Two million
 * IPv4 networks that do not touch are four million ranges of 5 bytes; of IPv6, of 17 bytes: 68 MB,
 * and their text is larger.
 */
export const listNetworksMax = 2_000_000

/**
 * The widest network of a list: an eighth of what one registry has. A wider one is a mistake, such
 * as 0.0.0.0/0, and would make every client an exit of Tor.
 */
export const widestListed = { v4: 8, v6: 16 } as const

/**
 * Networks wider than this are an effect on many people, for which tenants may want four eyes:
 * 65,536 addresses of IPv4; of IPv6 what one provider gives 65,536 customers.
 */
export const wideListed = { v4: 16, v6: 32 }

/**
 * Ranges of one database. A range has 8 bytes for IPv4, 12 for IPv6 up to /64 and at most 20 for
 * longer prefixes: 192 MB of IPv6 at most, where real files have two to five million ranges.
 */
export const databaseRangesMax = 16_000_000

/** Deepest nesting of a record. City records have four levels, and pointers add one each. */
export const recordDepthMax = 32

/**
 * Values that are read for each byte of a file, with 4,096 in any case. Records share their parts
 * by pointers, so a part is read often: files of city records have 2 to 4 values a byte.
 */
export const recordValuesPerByte = 16
export const recordValuesMin = 4_096

/** Characters of an organization's name that are kept. The longest of real ones has some 120. */
export const organizationCharactersMax = 128

/**
 * Different facts of one database. Cities with coordinates are some 300,000. While they are read
 * each is an object of some 300 bytes, and 27 bytes afterwards.
 */
export const databaseFactsMax = 1_000_000

/** MiB of JavaScript objects while a file is read: a million facts with their names are 500. */
export const networkReaderMiB = 1_024

/** How often the folder is looked at. A file is read when two looks find it unchanged. */
export const networkLookMs = 15_000

/**
 * How long one file may be read: 10 s, and 0.5 s for each MiB. The other bounds end a hostile file
 * long before; this one ends what they do not know of.
 */
export const networkReadMs = 10_000
export const networkReadMsPerMiB = 500

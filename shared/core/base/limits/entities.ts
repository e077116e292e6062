/**
 * Bounds of what the console reads of one device or user, links and changes of signals, and of how
 * phones are recognised.
 */

/** Linked devices or users in one answer; a graph shows at most as many nodes. */
export const linkedMax = 200
/** Users of a session in a list of 1,000 sessions; the rest is a count. Ids of 256 bytes are 0.8 MB. */
export const sessionUsersShownMax = 3
/** What a linked one shares, by id; the rest is a count. 200 of 10 ids of 256 bytes are 0.5 MB. */
export const sharedShownMax = 10
/**
 * Pairs of a device and a user, or of a session, that one query returns: some 100 bytes each, so
 * 5 MB of text and some 30 ms to parse.
 */
export const linkPairsMax = 50_000
/** Devices or users from which links are followed, the latest ones. */
export const linkSourcesMax = 10_000
/** Sessions that are looked for on other devices: hashes of 20 digits, 105 KB of one parameter. */
export const linkSessionsMax = 5_000

/**
 * Answers about links, and about changes of signals, that are read at once. Each query uses two
 * threads of ClickHouse. An answer about links has at most three of 3 s side by side, one about
 * changes has two of 5 s one after the other.
 */
export const linkLimits = { perTenant: 1, total: 2, queuePerTenant: 20, waitMs: 5_000 }
export const signalChangeLimits = { perTenant: 1, total: 2, queuePerTenant: 20, waitMs: 5_000 }

/** Entries of a timeline in one answer: 200 of some 500 bytes are 100 KB. */
export const timelinePageMax = 200
export const timelinePageDefault = 50
/**
 * Alerts whose notes, dispositions, assignments and deliveries a timeline has, the newest: an index
 * finds each of them in some 10 us.
 */
export const timelineAlertsMax = 10_000
/** Devices of a user or a phone whose events a timeline has, the latest: 256 KB of their ids. */
export const timelineDevicesMax = 1_000
/** Devices of a user or a phone whose changes of signals a timeline has: two queries for each. */
export const timelineSignalDevicesMax = 5
/** Each answer has a query of two threads for at most 5 s, and those of signals one by one. */
export const timelineLimits = { perTenant: 1, total: 2, queuePerTenant: 20, waitMs: 5_000 }

/** Other devices on a network in one answer: 200 rows of some 300 bytes are 60 KB. */
export const networkDevicesMax = 200
/** Countries, and networks, of a fleet in one answer: 200 of 250 bytes each are 100 KB. */
export const fleetNetworksMax = 200
/** A query of a network's devices, or of a fleet's networks, has two threads for at most 10 s. */
export const networkReadLimits = { perTenant: 1, total: 2, queuePerTenant: 20, waitMs: 5_000 }

/** Changes of signals in one answer, the latest ones. */
export const signalChangesMax = 500
/** Signals in one answer; the catalog has some 150, and SDKs choose other names. */
export const signalsOfDeviceMax = 500
/**
 * Events that measured something else than the one before, the latest ones: 100 bytes each, 2 MB.
 * Only a device that changes with every event has more.
 */
export const changedEventsMax = 20_000
/**
 * Two starts of a system that are no further apart are the same one: SDKs compute it from the clock
 * and the time since, each of which is a second off at most.
 */
export const bootToleranceMs = 2_000

/**
 * Phones that share a value are compared up to this many. A value that more have in common is worth
 * less than a guess among them: of two phones in twenty at most one can be it.
 */
export const phonesOfKeyMax = 20

/**
 * Traits of devices that a scorer knows to be stored: 100,000 entries of some 200 bytes are 20 MB.
 * One that is not remembered is stored again, which changes nothing.
 */
export const rememberedTraitsMax = 100_000
/**
 * Installs of which a scorer knows the keys that are stored, and these keys: 32 bytes each and 200
 * an install, so 26 MB and 20 MB. A phone has some eight, and one more at each network.
 */
export const rememberedInstallsMax = 100_000
export const rememberedKeysMax = 800_000
/**
 * Keys that are remembered of one install, the latest ones. An event has at most 15, and looking
 * each of them up among 64 costs less than 2 us. Only a made-up install goes on to have more.
 */
export const rememberedKeysOfInstallMax = 64
/**
 * How long after they were last written the keys of an install that goes on are written again:
 * retention counts whole days since then.
 */
export const identityRefreshMs = 12 * 60 * 60 * 1000
/** How often a scorer asks whether an erasure has ended: an index of a few rows, below a ms. */
export const erasuresCheckMs = 5_000

/** A phone of more installs than this grows only by a strong identifier or an attested key. */
export const phoneInstallsMax = 20

/** Phones that may share an identifier which still names one of them. */
export const strongSharersMax = 2
/**
 * The same where another identifier differs and no person is in common: one reset of a phone looks
 * so, and so does each further phone of a model whose firmware gives all of them one identifier.
 */
export const resetSharersMax = 1

/**
 * Installs of a phone that one answer shows, the latest ones, and to which analysts may add: 200
 * with ten comparisons of 80 bytes each are 160 kB. A phone that grows by itself stops at twenty
 * unless a strong identifier speaks for more.
 */
export const phoneInstallsShownMax = 200
/** Users, and alerts, of a phone in one answer, the latest ones. */
export const phoneUsersShownMax = 200
export const phoneAlertsShownMax = 50
/** Bytes of ids in one query about phones: ClickHouse takes 128 KiB of a parameter. */
export const phoneLookUpBytesMax = 96 * 1024
/** Corrections of phones of one tenant that are not undone: 400 bytes each, 4 MB. */
export const phoneCorrectionsMax = 10_000
/** How long an undone correction is kept, as long as the audit log by default. */
export const undoneCorrectionsKeptDays = 400
/** Corrections of the installs of a phone in one answer, the latest ones: 80 kB of 400 bytes. */
export const correctionsShownMax = 200
/** Answers about phones that are read at once: each has some queries of two threads for 3 s. */
export const phoneReadLimits = { perTenant: 2, total: 4, queuePerTenant: 50, waitMs: 5_000 }

/**
 * Installs of which a value's holders are read one by one: those with an identifier or a user, of
 * which one phone may have had many, and those with common traits. A value on more counts its
 * installs as phones and leads to none of them. 1,024 of 60 bytes are 60 KB.
 */
export const personalHoldersMax = 1_024
export const traitHoldersMax = 32
/**
 * Of an identifier's or a user's installs the latest so many are resolved to phones, and lead to
 * them; more phones than `phonesOfKeyMax` among them lead to none. An event has at most 14 keys: 8
 * identifiers, the attested key, two users and three levels of traits. So an install is looked up
 * among 896 others at most, each of which is resolved once in a batch, for all installs together.
 */
export const latestHoldersMax = 64
/**
 * Phones that an install is compared with: those of its identifiers come first, then those of its
 * users. Three keys of 20 phones each; ordinary installs have some five.
 */
export const candidatesMax = 64
/**
 * Installs of a phone that a new one is compared with, by their first events: the first of the
 * phone and the latest others. What any of them has in common with the new one is known by its key.
 */
export const comparedInstallsMax = 8
/**
 * Steps that deciding on phones takes for one tenant in a batch: as many for reading and as many
 * for comparing. To read, a key of an install costs a step, an install with the key that is in the
 * batch one, and another one `comparedInstallsMax` more, since its link and the first events of so
 * many may have to be read. To compare, each phone that a key leads to costs a step, each link that
 * is joined and each install that is compared.
 *
 * A new install of a phone that was never seen costs 28 and 14, an equal one of a known phone 28
 * and 24. A batch has 16 MiB, so some 11,000 events of 1.5 KB: all of them may be new installs. One
 * event costs at most 14 * (1 + 64 * 9) = 8,078 to read, and 14 * 20 + 64 * (21 + 9) = 2,200 to
 * compare. A step takes some us, so no tenant delays others by more than a second or two.
 */
export const tenantStepsMax = 350_000
/**
 * Rounds in which a batch finds the installs that others share a key with. Four find all that are
 * decided. Each further one finds some that another scorer is deciding: a key leads to a thousand
 * of them at once, so only installs that are made to follow one another need more, and are left
 * out.
 */
export const searchRoundsMax = 16
/** How long an install that was not compared is left alone, before its next event decides it again. */
export const comparedAgainMs = 5_000

/** Of a value with so many sampled installs, which are 3,000, only those are counted from then on. */
export const sampledHoldersMin = 48
/** One install in so many is in the sample; the view `identity_samples_of_keys` has the same. */
export const installsPerSample = 64
/** A tenant of fewer phones is taken for one of so many: a sample says nothing of fewer. */
export const tenantPhonesMin = 1_000
/** Keys, or installs, in one query: hashes of 21 bytes, ids of 260 at most; 5 MB of text. */
export const identityQueryMax = 20_000
/**
 * Keys of which one query reads the installs, between two looks at the steps that are left: 64 of
 * 60 bytes each are 19 MB, ordinary ones have one or two.
 */
export const heldKeysQueryMax = 5_000
/** Links in memory: 400 bytes each are 40 MB; an install that is not among them costs one row. */
export const linksInMemoryMax = 100_000
/** How long a link in memory is taken for stored; then it is read again. */
export const linkKnownMs = 3_600_000
/** First traits of installs in memory, of those that new ones are compared with: 1 KB each, 10 MB. */
export const firstTraitsInMemoryMax = 10_000

/** New installs of one tenant that are learned from: of so many a fifth is known to 0.4 %. */
export const learnedInstallsMax = 10_000
/**
 * Comparisons that are learned from: of 100 bytes each, 50 MB. Ordinary installs have some ten; of
 * made-up ones with hundreds the latest are left out.
 */
export const learnedComparisonsMax = 500_000
/** New installs, and those among them with a phone to compare with, of which nothing is learned. */
export const learnedInstallsMin = 1_000
export const comparedInstallsMin = 100
/** From how many days they are: people who come back do so within weeks. */
export const learnedDays = 30
/** Installs that are read at once to learn from: twenty times five queries of a tenant. */
export const learnedBatchInstalls = 500
/**
 * How long a version is kept after the next one holds. A stream keeps events for three days; a
 * version is 2 KB, so a tenant has some 60 KB.
 */
export const parametersKeptDays = 30

/** Limits of the intake. Units are in the names. */
export const limits = {
  /** GitHub itself drops larger payloads. */
  bodyBytes: 25 * 1_048_576,
  /** GitHub gives up after 10 s. */
  deadlineMs: 9_000,
  /** The first byte of a body comes within this time after the headers. */
  firstByteMs: 2_000,
  /** Complete deliveries taken in at once; more are answered 503 and come again. */
  inFlight: 2_000,
  /** Received bytes of bodies together: their signature is not checked yet. */
  bytesInFlight: 256 * 1_048_576,
  /** Received bytes of one address: two of the largest deliveries. */
  bytesPerAddress: 64 * 1_048_576,
  /** Unfinished bodies of one address. */
  unfinishedPerAddress: 500,
  retryAfterSeconds: 5,
  focusCodePoints: 500,
  /** Wrong signatures of one address in one window before they are answered 429. */
  wrongSignatures: 30,
  wrongSignatureWindowMs: 60_000,
  /** Addresses counted at once; the one without requests for the longest time is forgotten. */
  countedAddresses: 4_096,
  /** Deliveries come in bursts: one event reports all deliveries of this time. */
  newsMs: 250,
  newsIds: 50,
} as const;

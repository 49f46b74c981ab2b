/** Numbers of the doctor. Times in milliseconds, sizes in bytes. */
export const limits = {
  /** Checks that run at the same time. */
  atOnce: 6,
  checkMs: 30_000,
  /** Checking the gateway's file starts a container. */
  gatewayCheckMs: 120_000,
  /** Deadline of one question to GitHub, a name server, the backend or the gateway. */
  askMs: 10_000,
  gitMs: 10_000,
  /** For the agent server to take a connection; shorter than `askMs`. */
  handshakeMs: 5_000,
  /** Below these, disks are full soon, and full. */
  freeBytes: { warn: 5 * 1024 ** 3, fail: 512 * 1024 ** 2 },
  /** GitHub refuses a JWT that is a minute off. */
  clockSkewMs: { warn: 30_000, fail: 60_000 },
  /** Automatic restarts of a container at which the doctor warns. */
  restarts: 3,
  deliveries: 20,
  /** A certificate is renewed when a third of its life is left; below a sixth the renewal has failed. */
  certificateLifeLeft: 1 / 6,
  answerBytes: 1_048_576,
  /** Foreign items that a finding lists at most. */
  shownItems: 5,
} as const;

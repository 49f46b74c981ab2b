/**
 * Leaf functions that several rooms need and that know nothing of the product: reading and writing files safely, making
 * text safe to show, back-off, redaction, texts of errors, frames of event streams, requests to servers of this machine. Every room may import it; the page and `machines`
 * through `browser.ts`, which needs no Node. Never here: settings, processes, HTTP servers.
 */
export { acceptQueued } from './accept-queue.ts';
export { backTickFence, longestBackTicks } from './back-ticks.ts';
export { type Backoff, exponentialBackoffMs, type Jitter, jitters } from './backoff.ts';
export {
  type BoundedReadOptions,
  type FileRefusal,
  FileRefusedError,
  fileFault,
  openToAppend,
  readBoundedFile,
  withAdvice,
} from './bounded-file.ts';
export { privateCacheDirectory } from './cache-directory.ts';
export { closestOf } from './closest.ts';
export { count, plural } from './count.ts';
export { ensurePrivateDirectory, makeDirectory, PrivateDirectoryError } from './directories.ts';
export {
  AtomicFile,
  createFileAtomic,
  type JsonFile,
  readJson,
  readUntrustedJson,
  temporaryName,
  type WriteOptions,
  writeFileAtomic,
  writeFileAtomicAsync,
  writerOfTemporary,
} from './files.ts';
export { foldBlankLines } from './fold-blank-lines.ts';
export { fit, rankOf, scattered } from './fuzzy.ts';
export { expandBraces, nameTest, type PathTest, pathTest } from './glob.ts';
export { isDeeperThan } from './json-depth.ts';
export { appendElement, lineOf, setMember } from './json-edit.ts';
export { Limit } from './limit.ts';
export { LineSplitter, type LineSplitterOptions } from './lines.ts';
export { hostAndPort, httpBase, isLoopback, type ListenAddress, plainHost } from './listen-address.ts';
export {
  askLocal,
  type HttpAnswer,
  type HttpProbeResult,
  type HttpQuestion,
  keepConnection,
  type LocalConnection,
  probeHttp,
} from './local-http.ts';
export { messageOf } from './message-of.ts';
export { isMissingPart, replacedProgramAdvice } from './missing-part.ts';
export { dollars, price } from './money.ts';
export { PacedReading } from './paced-reading.ts';
export { packageRoot, stablePackageRoot } from './package-root.ts';
export { canonicalPath, isWithin, realPathOr } from './paths.ts';
export { type DirectoryLoss, PinnedDirectory } from './pinned-directory.ts';
export { findProgram, usualPlaces } from './programs.ts';
export { Pump } from './pump.ts';
export {
  redact,
  redacted,
  redactorFor,
  StreamRedactor,
  shortestSecret,
  shortestUncertainSecret,
  spellingsOf,
  TextStreamRedactor,
} from './redaction.ts';
export { Ring, type RingOptions } from './ring.ts';
export { SequentialFile } from './sequential-file.ts';
export { shellWord } from './shell.ts';
export { type SseFields, sseFrame } from './sse-frame.ts';
export { plainText, TextTail } from './text-tail.ts';
export { isHttpUrl, maskedAddress, passwordIn, withoutUserInfo } from './urls.ts';
export { userHome } from './user-home.ts';
export { describeUser } from './users.ts';
export { compareVersions, isVersion } from './version-order.ts';
export { codePointName, type VisibleOptions, VisibleStream, visible } from './visible.ts';
export { strictJson, strictValue, WellFormedStream, wellFormed, wellFormedJson } from './well-formed.ts';
export { withoutTokens } from './without-tokens.ts';

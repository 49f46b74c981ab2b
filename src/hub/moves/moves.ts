import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import * as v from 'valibot';
import { AtomicFile, messageOf, readJson } from '../../lib/index.ts';
import type { Logger } from '../../log/index.ts';
import { hasMoveEnded, type MoveInput, MoveRecord, maxActiveMoves, placeName } from '../../protocol/index.ts';
import { linkDamagedCopy } from '../../supervise/index.ts';
import { hubError } from '../errors.ts';
import type { Places } from './ends.ts';
import { MoveRun, type MoveRunOptions, type StoredMove } from './run.ts';

/** Greatest number of ended moves in the list. */
const maxEnded = 20;

const Entry = v.object({
  ...v.omit(MoveRecord, ['sentBytes', 'totalBytes', 'entries']).entries,
  isOffered: v.boolean(),
  /** Absent in files of earlier Hubs: then the target may have the conversation whenever it has the parts. */
  isCommitting: v.optional(v.boolean()),
  isCancelled: v.boolean(),
  /** Absent in files of earlier Hubs. */
  isRequested: v.optional(v.boolean(), false),
});
const Stored = v.object({ version: v.literal(1), moves: v.pipe(v.array(v.unknown()), v.maxLength(1_000)) });

export interface MovesOptions extends Places, Pick<MoveRunOptions, 'observe'> {
  readonly statePath: string;
  readonly logger: Logger;
  readonly seed: () => number;
}

/** Moves of conversations that this Hub leads, in `moves.json` (0600, atomic). A move continues under the next Hub. */
export class Moves {
  readonly #options: MovesOptions;
  readonly #file: AtomicFile;
  readonly #runs = new Map<string, MoveRun>();
  readonly #ended: MoveRecord[] = [];
  #writing: Promise<void> = Promise.resolve();

  constructor(options: MovesOptions) {
    this.#options = options;
    this.#file = new AtomicFile(join(options.statePath, 'moves.json'));
    this.#load();
  }

  /** Continues the moves of an earlier Hub. */
  open(): void {
    for (const run of this.#runs.values()) run.start();
  }

  /** Reads the moves of an earlier Hub. Saves a copy of a file with an invalid row, and uses its other rows. */
  #load(): void {
    const { logger } = this.#options;
    const { path: file } = this.#file;
    const read = readJson(file, Stored);
    if (read.kind === 'missing') return;
    const rows = read.kind === 'ok' ? read.value.moves.map((row) => v.safeParse(Entry, row)) : [];
    const problem = read.kind === 'ok' ? problemIn(rows) : read.problem;
    // The next save replaces the original.
    const copy = problem === undefined ? null : linkDamagedCopy(file);
    if (problem !== undefined)
      logger.warn('the record of moves is damaged; its valid rows are used', { file, problem, copy });
    for (const row of rows) {
      if (!row.success) continue;
      const { isOffered, isCommitting = isOffered, isCancelled, isRequested, ...record } = row.output;
      if (hasMoveEnded(record)) this.#ended.push({ ...record, sentBytes: 0, totalBytes: 0, entries: 0 });
      else this.#add({ ...record, isOffered, isCommitting, isCancelled, isRequested }, true);
    }
    if (problem !== undefined) this.#saveSoon();
  }

  /** Resolves when the move is on disk: from then on it outlives this Hub. @throws HttpError `moveRefused` */
  async start({ threadId, from, to }: MoveInput): Promise<MoveRecord> {
    if (placeName(from) === placeName(to))
      throw hubError('moveRefused', 'Source and target are the same. Name another directory or host.');
    const active = [...this.#runs.values()].map((run) => run.record());
    const known = active.find((each) => each.threadId === threadId);
    if (known)
      throw hubError(
        'moveRefused',
        `A move of the conversation is already active: ${known.state}. See "oratorio move --list".`,
        { ...known },
      );
    if (active.length >= maxActiveMoves)
      throw hubError('moveRefused', `${maxActiveMoves} moves are active, which is the limit. Wait until one ends.`);
    const moveId = `move_${randomBytes(8).toString('hex')}`;
    const run = this.#add(
      {
        ...{ moveId, threadId, from, to, state: 'asking', reason: null, startedAt: new Date().toISOString() },
        ...{ isOffered: false, isCommitting: false, isCancelled: false, isRequested: false },
      },
      false,
    );
    try {
      await this.#save();
    } catch (error) {
      this.#runs.delete(moveId);
      throw hubError(
        'moveRefused',
        `The Hub cannot save the move: ${messageOf(error)}. Check the disk of this machine, then try again.`,
      );
    }
    run.start();
    return run.record();
  }

  list(): readonly MoveRecord[] {
    return [...this.#ended, ...[...this.#runs.values()].map((run) => run.record())];
  }

  /**
   * Goes back, unless the target already has the conversation. Resolves when the request is on disk, so that the next Hub goes back too.
   * @throws HttpError `notFound`
   */
  async cancel(moveId: string): Promise<MoveRecord> {
    const run = this.#runs.get(moveId);
    if (run) {
      run.cancel();
      await this.#save();
    }
    const record = run?.record() ?? this.#ended.find((each) => each.moveId === moveId);
    if (!record) throw hubError('notFound', 'There is no such move. List the moves: oratorio move --list');
    return record;
  }

  /** Leaves all moves to the next Hub. Resolves when no write is under way. */
  close(): Promise<void> {
    for (const run of this.#runs.values()) run.stop();
    return this.#writing;
  }

  #add(stored: StoredMove, isContinued: boolean): MoveRun {
    const { registry, fleet, observe, seed, logger } = this.#options;
    const run = new MoveRun({
      ...{ registry, fleet, observe, stored, isContinued, seed: seed() },
      save: () => this.#save(),
      onEnd: (record) => {
        this.#runs.delete(record.moveId);
        this.#ended.push(record);
        this.#ended.splice(0, this.#ended.length - maxEnded);
        const { threadId, state, reason } = record;
        logger.info('a move of a conversation has ended', { threadId, state, reason });
        // If this fails, the next Hub asks both places and ends the move again.
        this.#saveSoon();
      },
    });
    this.#runs.set(stored.moveId, run);
    return run;
  }

  #saveSoon(): void {
    const { logger } = this.#options;
    void this.#save().catch((error: unknown) =>
      logger.warn('could not write the record of moves; the next change tries again', { error }),
    );
  }

  #save(): Promise<void> {
    const ended = this.#ended.map(({ sentBytes: _, totalBytes: __, entries: ___, ...record }) => ({
      ...{ ...record, isOffered: true, isCommitting: true, isCancelled: record.state !== 'moved' },
    }));
    const moves = [...ended, ...[...this.#runs.values()].map((run) => run.stored())];
    const written = this.#file.write(`${JSON.stringify({ version: 1, moves })}\n`);
    this.#writing = written.catch(() => {});
    return written;
  }
}

/** First problem of the rows of the file; undefined: all are valid. */
function problemIn(rows: readonly v.SafeParseResult<typeof Entry>[]): string | undefined {
  const at = rows.findIndex(({ success }) => !success);
  const [issue] = rows[at]?.issues ?? [];
  return issue && `row ${at + 1}, ${v.getDotPath(issue) ?? 'whole row'}: ${issue.message}`;
}

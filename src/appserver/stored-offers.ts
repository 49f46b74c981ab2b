import * as v from 'valibot';
import { type DelegateOffers, noOffers } from '../agent/index.ts';
import { AtomicFile, messageOf, readUntrustedJson } from '../lib/index.ts';
import type { Logger } from '../log/index.ts';
import { AgentOption, defaults } from '../protocol/index.ts';

const { offers: most, offerChars } = defaults.externalAgent;
const words = v.pipe(v.string(), v.maxLength(offerChars));
const listOf = <S extends v.GenericSchema>(entry: S) => v.pipe(v.array(entry), v.maxLength(most));

const OffersFile = v.object({
  version: v.literal(1),
  /** Name of the agent that has offered them. */
  agent: v.string(),
  offers: v.object({
    models: listOf(words),
    modes: listOf(v.object({ id: words, name: words })),
    options: v.optional(listOf(AgentOption), []),
    commands: listOf(v.object({ name: words, description: words, argumentHint: v.exactOptional(words) })),
  }),
});

export interface StoredOffersOptions {
  readonly file: string;
  readonly agent: string;
  readonly logger: Logger;
}

/** Last offers of an agent, for clients that ask before its first turn: they outlive the agent server. */
export class StoredOffers {
  readonly #options: StoredOffersOptions;
  readonly #file: AtomicFile;
  #offers: DelegateOffers | undefined;
  #writing: Promise<void> = Promise.resolve();

  constructor(options: StoredOffersOptions) {
    this.#options = options;
    this.#file = new AtomicFile(options.file, { isFlushed: false });
  }

  get offers(): DelegateOffers {
    this.#offers ??= this.#read();
    return this.#offers;
  }

  put(offers: DelegateOffers): void {
    if (JSON.stringify(offers) === JSON.stringify(this.offers)) return;
    this.#offers = offers;
    const { agent, logger } = this.#options;
    this.#writing = this.#file.write(JSON.stringify({ version: 1, agent, offers })).catch((error: unknown) => {
      logger.warn('could not store the offers of an agent; they are unknown after a restart', {
        ...{ agent, reason: messageOf(error) },
      });
    });
  }

  /** Resolves once the last offers are stored. */
  close(): Promise<void> {
    return this.#writing;
  }

  #read(): DelegateOffers {
    const { file, agent, logger } = this.#options;
    const read = readUntrustedJson(file, OffersFile);
    if (read.kind === 'invalid') logger.warn('ignored the stored offers of an agent', { file, problem: read.problem });
    return read.kind === 'ok' && read.value.agent === agent ? read.value.offers : noOffers;
  }
}

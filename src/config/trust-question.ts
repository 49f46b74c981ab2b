import { createHash } from 'node:crypto';
import { count, visible } from '../lib/index.ts';
import type { ChangedFile } from './agreement.ts';
import { requireValid } from './load.ts';
import { requestLines } from './request-lines.ts';
import { changesSinceTrust, requestedFiles, requestedSettings, type TrustPlace, trustWorkspace } from './trust.ts';

/** Trust question, shared by the terminal and the page. */
export interface TrustQuestion {
  /** Sensitive settings, then changes since the user last agreed; empty without sensitive settings. */
  readonly lines: readonly string[];
  /** Settings and files that changed since the user agreed. */
  readonly changed: readonly string[];
  /** Number of workspace files that the settings start. */
  readonly files: number;
  /** Changes with the settings and the files. */
  readonly revision: string;
  /** Records trust in exactly these settings and files. @throws TrustError if they changed, ConfigError */
  readonly agree: () => void;
}

/** Sentence below the lines of a question. */
export const trustConsequence =
  'These settings can start programs, open listeners and send data elsewhere, with your rights.';

/** Most lines of a changed file to show; the question gives the number of further lines. */
const maxNewLines = 100;

const inLine = (text: string): string => visible(text, { multiline: false });

/** Builds the question for the current sensitive settings of a workspace. @throws ConfigError, TrustError */
export function trustQuestion(
  place: TrustPlace & { readonly env: Readonly<Record<string, string | undefined>> },
): TrustQuestion {
  const { workspace } = place;
  const requested = requestedSettings(workspace);
  const files = requestedFiles(workspace);
  requireValid(place);
  const changes = changesSinceTrust(place);
  const changed = [...(changes?.settings ?? []), ...(changes?.files ?? []).map(({ path }) => path)].map(inLine);
  const starts = [...files.keys()].map((path) => `  starts a file of the workspace: ${inLine(path)}`);
  const lines = [...requestLines(requested), ...starts];
  if (changes !== undefined && changed.length > 0 && lines.length > 0) {
    lines.push(
      `Changed since you agreed on ${changes.trustedAt}:`,
      ...changes.settings.map((path) => `  ${inLine(path)}`),
      ...changes.files.flatMap(fileLines),
    );
  }
  const subject = JSON.stringify([[...requested], [...files], lines]);
  return {
    ...{ lines, changed, files: files.size },
    revision: createHash('sha256').update(subject).digest('base64url'),
    agree: () => trustWorkspace(place, requested, files),
  };
}

/** A changed file with its new lines. */
function fileLines({ path, state, newLines }: ChangedFile): string[] {
  const name = inLine(path);
  if (state === 'removed') return [`  ${name} is no longer there`];
  if (newLines === null)
    return [state === 'new' ? `  ${name} is new: read it` : `  ${name}: read it, its earlier lines are unknown`];
  if (newLines.length === 0) return [`  ${name}: no new lines; lines were removed or moved`];
  const shown = newLines.slice(0, maxNewLines).map(({ number, text }) => `    ${number}: ${inLine(text)}`);
  const rest = newLines.length - shown.length;
  const end = rest > 0 ? [`    … and ${rest} more: read the file before you agree`] : [];
  return [`  ${name}: ${count(newLines.length, 'new line')}`, ...shown, ...end];
}

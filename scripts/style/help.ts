/** Checks the help of the command line: an imperative of at most ten words. */
import type { CommandSpec } from '../../src/cli/command.ts';
import type { Finding } from './findings.ts';

const maxWords = 10;

/** First words of help. A new verb is added here. */
const verbs = new Set(
  (
    'Accept Add Allow Agree Answer Approve Build Apply Ask Attach Begin Cancel Change Check Choose Clone Complete Connect Copy Continue Create Decline Delete ' +
    'Disable Enable End Export Fail Filter Finish Focus Follow Generate Give Grant Hide Import Include Initialise Install Keep ' +
    'Leave Let Limit List Listen Log Make Merge Move Name Open Overwrite Pass Post Print Prompt Publish Pull Read Recreate Remove Rename Repeat Replace Request Require ' +
    'Report Reset Restart Restore Restrict Resume Return Revoke Review Rotate Run Save Schedule Send Serve Set Show Skip Speak ' +
    'Start Stop Store Switch Take Talk Trust Turn Undo Update Upgrade Use Verify Wait Watch Write'
  ).split(' '),
);

const wordsOf = (text: string): string[] => text.split(/\s+/).filter((word) => /[\p{L}\p{N}]/u.test(word));

/** Help texts that are too long, or that do not begin with a verb. */
export function helpFindings(commands: readonly CommandSpec[]): Finding[] {
  return commands.flatMap(({ name, describe, options }) => [
    ...findingsOf(name, describe[0] ?? ''),
    ...options.flatMap((option) => findingsOf(`${name} --${option.name}`, option.describe)),
  ]);
}

function findingsOf(where: string, text: string): Finding[] {
  const words = wordsOf(text);
  const place = { file: 'src/cli', line: 1, instead: 'an imperative of at most ten words' };
  return [
    ...(words.length > maxWords
      ? [{ ...place, id: 'help-length', reason: `help of “${where}” has ${words.length} words: ${text}` }]
      : []),
    ...(verbs.has((words[0] ?? '').replace(/[^\p{L}]/gu, ''))
      ? []
      : [{ ...place, id: 'help-imperative', reason: `help of “${where}” does not begin with a verb: ${text}` }]),
  ];
}

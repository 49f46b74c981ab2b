import { catalogue } from '../../../machines/index.ts';
import { graphOf, loadCharts, mermaidOf, svgOf } from '../../inspect/index.ts';
import type { Chart } from '../../protocol/index.ts';
import type { CommandContext } from '../command.ts';
import { CliError } from '../errors.ts';
import { exitCodes } from '../exit-codes.ts';
import { columns } from '../render.ts';

/** `oratorio machines [name]`: needs no Hub. */
export async function run({ argument, options, output }: CommandContext): Promise<number> {
  const format = options['format'] ?? (output.json ? 'json' : 'mermaid');
  if (argument === undefined) {
    if (options['format'] !== undefined)
      throw new CliError('usage', '--format needs the name of a machine.', 'See: oratorio machines');
    const rows = Object.entries(catalogue).map(([name, { config }]) => ({
      name,
      description: firstSentence(config.description ?? ''),
    }));
    if (output.json) output.document(rows);
    else
      for (const line of columns(
        ['NAME', 'PURPOSE'],
        rows.map(({ name, description }) => [name, description]),
        output,
      ))
        output.line(line);
    return exitCodes.ok.code;
  }
  if (format === 'mermaid') output.raw(diagram(argument));
  else {
    const chart = await drawn(argument);
    if (format === 'json') output.document(chart);
    else output.raw(svgOf(chart));
  }
  return exitCodes.ok.code;
}

const firstSentence = (text: string): string => text.split(/(?<=[.!?])\s/)[0] ?? text;

function diagram(name: string): string {
  const machine = catalogue[name];
  if (!machine) throw unknown(name);
  const text = mermaidOf(graphOf(name, machine), { actions: true });
  return text.endsWith('\n') ? text : `${text}\n`;
}

async function drawn(name: string): Promise<Chart> {
  const chart = (await loadCharts()).find((each) => each.name === name);
  if (!chart) throw unknown(name);
  return chart;
}

const unknown = (name: string): CliError =>
  new CliError('usage', `There is no machine ${name}.`, 'See: oratorio machines');

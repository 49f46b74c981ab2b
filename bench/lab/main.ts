/** `npm run lab`: runs harnesses on small repositories with a failing test, with a scripted model or a real one. */
import { runCommand } from './command.ts';

const output = { print: (line: string) => console.log(line), report: (line: string) => console.error(line) };

process.exitCode = await runCommand(process.argv.slice(2), process.env, output).catch((error: unknown) => {
  console.error(error instanceof Error ? error.message : error);
  return 2;
});

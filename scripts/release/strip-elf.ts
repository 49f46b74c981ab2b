/** Offsets in the header of a 64-bit ELF file (System V ABI). */
const at = { programs: 0x20, sections: 0x28, programSize: 0x36, programCount: 0x38, sectionCount: 0x3c, names: 0x3e };

/**
 * Strips symbols and debug information from an ELF program, like a Linux distribution. They follow the last loaded segment. Dynamic
 * symbols, to which addons bind, are in a loaded segment and stay.
 *
 * @returns the stripped program; any other file unchanged
 */
export function withoutSymbols(program: Buffer): Buffer {
  const isElf64 = program.subarray(0, 4).toString('latin1') === '\x7fELF' && program[4] === 2 && program[5] === 1;
  if (!isElf64) return program;
  const first = Number(program.readBigUInt64LE(at.programs));
  const [size, count] = [program.readUInt16LE(at.programSize), program.readUInt16LE(at.programCount)];
  const ends = Array.from({ length: count }, (_, index) => {
    const heading = first + index * size;
    return Number(program.readBigUInt64LE(heading + 0x08) + program.readBigUInt64LE(heading + 0x20));
  });
  const stripped = Buffer.from(program.subarray(0, Math.max(first + count * size, ...ends)));
  stripped.writeBigUInt64LE(0n, at.sections);
  stripped.writeUInt16LE(0, at.sectionCount);
  stripped.writeUInt16LE(0, at.names);
  return stripped;
}

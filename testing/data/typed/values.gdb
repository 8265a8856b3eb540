backtrace
#0  values::stop (pair=0x7fffffffe6c8, maybe=0x7fffffffe6de, list=0x7fffffffe6e2, label=...) at values.rs.in:88
#1  0x000000000040115c in values::inner (record=0x402040 <values::RECORD::h68c294ba6c8fbc15>, offset=-6, label=..., numbers=..., twice=...) at values.rs.in:83
#2  0x00000000004011ea in values::outer (count=3) at values.rs.in:71
#3  0x00000000004011fe in values::_start () at values.rs.in:64
registers
rip            0x40106f            0x40106f <values::stop+47>
rsp            0x7fffffffe628      0x7fffffffe628
rbp            0x7fffffffe698      0x7fffffffe698
rbx            0x0                 0
r12            0x0                 0
r13            0x0                 0
r14            0x0                 0
r15            0x0                 0
stack
0x7fffffffe628:	0x00007fffffffe6de	0x0000000000000005
0x7fffffffe638:	0x0000000000402021	0x0000000000000000
0x7fffffffe648:	0x0000000000000000	0x00007fffffffe6c8
0x7fffffffe658:	0x00007fffffffe6de	0x00007fffffffe6e2
0x7fffffffe668:	0x0000000000402021	0x0000000000000005
0x7fffffffe678:	0x0000000000000000	0x0000000000000000
0x7fffffffe688:	0x0000000000000000	0x0000000000000000
0x7fffffffe698:	0x00007fffffffe718	0x000000000040115c
0x7fffffffe6a8:	0x0000000000000000	0x0000000000000005
0x7fffffffe6b8:	0x0000000000000005	0x0000000000402021
0x7fffffffe6c8:	0xfffffffffffffffa	0x0000000100000002
0x7fffffffe6d8:	0x0201000000000000	0x0003000200050005
0x7fffffffe6e8:	0x0000000000402040	0xfffffffffffffffa
0x7fffffffe6f8:	0x0000000000402021	0x0000000000000005
0x7fffffffe708:	0x0000000000402002	0x0000000000000005
0x7fffffffe718:	0x00007fffffffe768	0x00000000004011ea
0x7fffffffe728:	0x00007fffffffe730	0x0000000000402000
0x7fffffffe738:	0x0000000000402020	0x0000000300000000
0x7fffffffe748:	0x0000000000402021	0x0000000000000005
0x7fffffffe758:	0x0000000000402040	0x0000000300000000
0x7fffffffe768:	0x00007fffffffe778	0x00000000004011fe
0x7fffffffe778:	0x0000000000000000	0x0000000000000001
0x7fffffffe788:	0x00007fffffffea5e	0x0000000000000000
0x7fffffffe798:	0x00007fffffffea84	0x00007fffffffea93
locals
#1  0x000000000040115c in values::inner (record=0x402040 <values::RECORD::h68c294ba6c8fbc15>, offset=-6, label=..., numbers=..., twice=...) at values.rs.in:83
83	    stop(&pair, &maybe, &list, label)
record = 0x402040 <values::RECORD::h68c294ba6c8fbc15>
offset = -6
label = "outer"
numbers = &[u16] [1, 2, 3, 5, 8]
twice = <optimized out>
list = [5, 2, 3]
level = 5
maybe = core::option::Option<u8>::Some(2)
pair = (-6, 4294967298)

import sys,time,json
sys.path.insert(0,'/work/wt/layout')
from engine.job import *
from engine.driver import LoadDriver
from engine.result_text import summary_lines
from engine.result_document import run_document
from dataclasses import replace
job=JobSpec((TargetSpec.lun((PathSpec("/dev/loop3"),PathSpec("/dev/loop4",3))),TargetSpec(None)),Knobs(queue_depth=8,stripe_width=2,blocks=(BlockShare(131072),)),size_bytes=1<<25)
d=LoadDriver(job,Permissions()); d.prepare(lambda x:None); d.start(); time.sleep(1.2)
d.turn(replace(job.knobs,policy=PathPolicy.LEAST_COMMAND_LOAD)); time.sleep(1)
d.stop()
r=d.result()
print("\n".join(summary_lines(r)))
doc=run_document(r)
print(json.dumps(doc["logical"])); print(json.dumps(doc["epochs"][1]["targets"][0]["paths"])[:300], doc["job"]["targets"])
